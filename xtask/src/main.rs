//! The project's chores: `cargo xtask test`, `cargo xtask check`, `cargo xtask bench`.

mod clients;
mod drift;
mod run;
mod tools;

use std::process::ExitCode;

const HELP: &str = "\
usage: cargo xtask COMMAND

  test     install or prepare what the tests need, and run all of them
  clients  install the MCP clients that tests use; prints what to set for `cargo test`
  check    format, lints, dependency rules, generated files
  explore  property tests with new random cases, and many of them
  stress   1,000 sessions, 64 clients, 100,000 runs, a server that dies again and again
  bench    build for speed and print the numbers; with the name of a part
           (warm, http, load, branch) and its options, those of that part
  generate write the generated files anew
";

fn main() -> ExitCode {
    let command = std::env::args().nth(1).unwrap_or_default();
    let outcome = match command.as_str() {
        "test" => test(),
        "check" => check(),
        "clients" => clients(),
        "explore" => explore(),
        "stress" => stress(),
        "bench" => bench(),
        "generate" => drift::generate(),
        "help" | "--help" => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprint!("{HELP}");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("Error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn test() -> anyhow::Result<()> {
    tools::prepare();
    // The same random cases each time: a change is judged by what it changes.
    // `explore` looks for new ones.
    let seed = std::env::var("PROPTEST_RNG_SEED").unwrap_or_else(|_| "7377".to_owned());
    let clients = clients::prepare();
    let mut env = vec![("PROPTEST_RNG_SEED", seed.as_str())];
    env.extend(clients.iter().map(|(name, place)| (*name, place.as_str())));
    run::cargo_with_env(&["test", "--workspace", "--all-targets", "--no-fail-fast"], &env)?;
    run::cargo(&["test", "--workspace", "--doc"])?;
    run::program(
        "python3",
        &["-B", "-m", "unittest", "discover", "-s", "crates/keeper/tests/drivers/shell"],
    )?;
    for python in tools::pythons() {
        run::with_env(
            "python3",
            &["-B", "-m", "unittest", "discover", "-s", "crates/keeper/tests/drivers/python"],
            &[("SESSILE_TEST_PYTHON", &python)],
        )?;
    }
    if tools::has("node") {
        let tests = run::files("crates/keeper/tests/drivers/node", ".test.js")?;
        let mut args = vec!["--test", "--test-concurrency=1"];
        args.extend(tests.iter().map(String::as_str));
        run::program("node", &args)?;
    }
    Ok(())
}

/// For tests by hand: `eval "$(cargo xtask clients)"`.
fn clients() -> anyhow::Result<()> {
    for (name, place) in clients::prepare() {
        println!("export {name}='{place}'");
    }
    Ok(())
}

/// Property tests with other random cases than `test` has, and many more.
fn explore() -> anyhow::Result<()> {
    let pure = ["protocol", "session", "store", "gateway", "server"];
    let packages: Vec<String> = pure.iter().map(|name| format!("sessile-{name}")).collect();
    let mut args = vec!["test", "--release"];
    for package in &packages {
        args.extend(["--package", package]);
    }
    run::cargo_with_env(&args, &[("PROPTEST_CASES", "10000")])
}

fn check() -> anyhow::Result<()> {
    run::cargo(&["fmt", "--all", "--check"])?;
    run::cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])?;
    run::cargo(&["check", "--package", "sessile", "--all-targets", "--features", "otlp"])?;
    tools::deny()?;
    drift::check()
}

/// The long form of the test of the same name: a thousand sessions, 64 clients
/// and a hundred thousand runs, while the server is killed again and again.
fn stress() -> anyhow::Result<()> {
    let args = ["test", "--release", "--package", "sessile", "--test", "all", "stress::", "--"];
    let args = [&args[..], &["--nocapture"]].concat();
    let scale =
        std::env::var("SESSILE_STRESS").unwrap_or_else(|_| "1000,64,100000,3000".to_owned());
    run::cargo_with_env(&args, &[("SESSILE_STRESS", &scale)])
}

fn bench() -> anyhow::Result<()> {
    run::cargo(&["build", "--release", "--package", "sessile", "--package", "sessile-bench"])?;
    let args: Vec<String> = std::env::args().skip(2).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    run::program("target/release/sessile-bench", &args)
}
