//! The TypeScript SDK: installs its packages, and builds, checks and tests it, as ESM and
//! as CommonJS, with several runtimes.

use crate::{clients, run, testing::SkippedTests};
use anyhow::{Context, bail, ensure};
use std::process::Command;

const FOLDER: &str = "sdk/typescript";

/// Programs that are npm packages, and the variables with their paths for the tests.
struct Runtime {
    folder: &'static str,
    packages: &'static [&'static str],
    programs: &'static [(&'static str, &'static str)],
}

/// The oldest supported Node, the newest in npm, and others.
const RUNTIMES: &[Runtime] = &[
    Runtime { folder: "oldest-node", packages: &["node@18.20.8"], programs: &[("node", OLDEST)] },
    Runtime {
        folder: "newest-node",
        packages: &["node@26.10.0"],
        programs: &[("node", "SESSILE_TEST_NEWEST_NODE")],
    },
    Runtime {
        folder: "others",
        packages: &["bun@1.4.4", "deno@2.9.6"],
        programs: &[("bun", "SESSILE_TEST_BUN"), ("deno", "SESSILE_TEST_DENO")],
    },
];

/// All tests run a second time with this one.
const OLDEST: &str = "SESSILE_TEST_OLDEST_NODE";

/// Installs missing packages. Returns the variables for the tests, and adds to `missing`
/// what could not be installed.
pub(crate) fn prepare(missing: &mut Vec<String>) -> Vec<(&'static str, String)> {
    if let Err(error) = install() {
        missing.push(format!("the packages of {FOLDER} ({error:#})"));
    }
    let folder = run::target().join("sdk-typescript");
    let mut variables = Vec::new();
    for Runtime { folder: name, packages, programs } in RUNTIMES {
        match clients::node_packages(&folder.join(name), packages) {
            Ok(place) => {
                for (program, variable) in *programs {
                    let program = place.join("node_modules/.bin").join(program);
                    variables.push((*variable, program.display().to_string()));
                }
            }
            Err(error) => missing.push(format!("{} ({error:#})", packages.join(" "))),
        }
    }
    variables
}

/// Runs `npm ci`, unless the same packages are installed.
fn install() -> anyhow::Result<()> {
    let folder = run::root().join(FOLDER);
    let lock = std::fs::read_to_string(folder.join("package-lock.json"))?;
    let stamp = folder.join("node_modules/.installed");
    if std::fs::read_to_string(&stamp).is_ok_and(|there| there == lock) {
        return Ok(());
    }
    let args = ["ci", "--no-audit", "--no-fund", "--silent"];
    eprintln!("+ npm {} (in {FOLDER})", args.join(" "));
    let status = Command::new("npm").args(args).current_dir(&folder).status();
    ensure!(status.context("cannot run npm")?.success(), "npm ci failed");
    std::fs::write(stamp, lock).context("cannot write down what is installed")
}

/// Writes the types from docs/openapi.json.
pub(crate) fn generate() -> anyhow::Result<()> {
    install()?;
    run::program("node", &[&script("generate")])
}

/// Checks that they are up to date.
pub(crate) fn check() -> anyhow::Result<()> {
    install()?;
    run::program("node", &[&script("generate"), "--check"])
}

fn script(name: &str) -> String {
    format!("{FOLDER}/scripts/{name}.mjs")
}

/// Measures a warm call through the SDK beside plain HTTP, with the release binary.
pub(crate) fn bench() -> anyhow::Result<()> {
    install()?;
    run::program("node", &[&script("build")])?;
    let binary = run::target().join("release/sessile").display().to_string();
    println!("\nthrough the TypeScript SDK");
    run::with_env("node", &[&format!("{FOLDER}/bench/warm.mjs")], &[("SESSILE_BIN", &binary)])
}

/// Runs all tests.
pub(crate) fn test(list: &SkippedTests, env: &[(&str, &str)]) -> Vec<anyhow::Error> {
    if !run::root().join(FOLDER).join("node_modules/.installed").exists() {
        let missing = list.add("the TypeScript SDK: its packages are not installed");
        return missing.err().into_iter().collect();
    }
    let mut failures = Vec::new();
    for (program, variable) in RUNTIMES.iter().flat_map(|runtime| runtime.programs) {
        if !env.iter().any(|(name, _)| name == variable) {
            let what = format!("the TypeScript SDK with {program} ({variable})");
            failures.extend(list.add(&what).err());
        }
    }
    failures.extend(test_parts(env));
    failures
}

/// Runs only these tests, with the current binary.
pub(crate) fn alone() -> anyhow::Result<()> {
    run::cargo(&["build", "--quiet", "--workspace", "--bins"])?;
    let mut missing = Vec::new();
    let env = prepare(&mut missing);
    ensure!(missing.is_empty(), "could not be installed: {}", missing.join(", "));
    let env: Vec<(&str, &str)> = env.iter().map(|(name, value)| (*name, value.as_str())).collect();
    test_parts(&env).into_iter().next().map_or(Ok(()), Err)
}

fn test_parts(env: &[(&str, &str)]) -> Vec<anyhow::Error> {
    let first = run::at_once("node", &[&script("generate"), "--check"], &[])
        .and_then(|()| run::at_once("node", &[&script("build"), "--unchecked"], &[]));
    if let Err(error) = first {
        return vec![error];
    }
    let binary = run::target().join("debug/sessile").display().to_string();
    let env = [env, &[("SESSILE_TEST_BIN", binary.as_str())]].concat();
    // They mostly wait, so they run at the same time.
    std::thread::scope(|scope| {
        let parts = [
            scope.spawn(types),
            scope.spawn(|| tested("node", Files::All, &env)),
            scope.spawn(|| tested_by_oldest(&env)),
        ];
        let ended = parts.map(|part| part.join().unwrap_or_else(|_| bail!("a test has no end")));
        ended.into_iter().filter_map(Result::err).collect()
    })
}

fn types() -> anyhow::Result<()> {
    let compiler = format!("{FOLDER}/node_modules/typescript/bin/tsc");
    let project = format!("{FOLDER}/tsconfig.check.json");
    run::at_once("node", &[&compiler, "--project", &project], &[])
}

/// Runs the tests as CommonJS, which every Node supports.
fn tested_by_oldest(env: &[(&str, &str)]) -> anyhow::Result<()> {
    let Some((_, oldest)) = env.iter().find(|(name, _)| *name == OLDEST) else { return Ok(()) };
    tested(oldest, Files::OfTheSdk, &[env, &[("SESSILE_TEST_FORM", "cjs")]].concat())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Files {
    All,
    /// Without the tests that start other runtimes.
    OfTheSdk,
}

fn tested(node: &str, which: Files, env: &[(&str, &str)]) -> anyhow::Result<()> {
    let files = run::files(&format!("{FOLDER}/test"), ".test.mjs")?;
    let is_wanted = |file: &&str| which == Files::All || !file.ends_with("runtimes.test.mjs");
    let files: Vec<&str> = files.iter().map(String::as_str).filter(is_wanted).collect();
    run::at_once(node, &[&["--test"], &files[..]].concat(), env)
}
