//! The names of an architecture, which differ between the kinds of packages.

use anyhow::Context;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Architecture {
    /// Rust's name, used for archives.
    pub(super) rust: &'static str,
    /// The name in `process.arch`, used for npm packages.
    pub(super) node: &'static str,
    pub(super) debian: &'static str,
}

const KNOWN: &[Architecture] = &[
    Architecture { rust: "x86_64", node: "x64", debian: "amd64" },
    Architecture { rust: "aarch64", node: "arm64", debian: "arm64" },
];

impl Architecture {
    /// Returns that of this machine: packages are made where they run, because each is tested.
    pub(super) fn here() -> anyhow::Result<Self> {
        Self::named(std::env::consts::ARCH)
    }

    fn named(rust: &str) -> anyhow::Result<Self> {
        let found = KNOWN.iter().find(|known| known.rust == rust).copied();
        found.with_context(|| {
            let known: Vec<&str> = KNOWN.iter().map(|known| known.rust).collect();
            format!("packages are made for {}; add the names of {rust}", known.join(" and "))
        })
    }

    /// Returns the name of the npm package with the program, which the SDK looks for.
    pub(super) fn npm(self) -> String {
        format!("@sessile/linux-{}", self.node)
    }
}

#[cfg(test)]
mod tests {
    use super::Architecture;

    #[test]
    fn each_kind_of_package_calls_an_architecture_by_its_own_name() {
        let names = |rust| Architecture::named(rust).map(|found| (found.npm(), found.debian));
        assert_eq!(names("x86_64").expect("known"), ("@sessile/linux-x64".to_owned(), "amd64"));
        assert_eq!(names("aarch64").expect("known"), ("@sessile/linux-arm64".to_owned(), "arm64"));
        let error = names("sparc64").expect_err("unknown").to_string();
        assert!(error.contains("x86_64 and aarch64"), "{error}");
    }
}
