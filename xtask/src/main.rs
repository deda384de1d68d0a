//! The project's tasks: `cargo xtask test`, `cargo xtask check`, `cargo xtask bench`.

mod clients;
mod dist;
mod generated;
mod run;
mod sdk_python;
mod sdk_typescript;
mod testing;
mod tools;

use std::process::ExitCode;

const HELP: &str = "\
usage: cargo xtask COMMAND

  test     install or prepare what the tests need, and run all of them
  clients  install the MCP clients that tests use; prints what to set for `cargo test`
  typescript  build, check and test the TypeScript SDK, and nothing else
  check    format, lints, dependency rules, generated files
  explore  property tests with new random cases, and many of them
  fuzz     requests of all kinds to a server with real sessions, for five minutes;
           with a number, for so many seconds
  stress   1,000 sessions, 64 clients, 100,000 runs, a server that dies again and again
  bench    build for speed and print the numbers; with the name of a part
           (warm, http, load, branch, pools, sandbox, agents, typescript, python) and its options,
           those of that part;
           with --peers, other runtimes beside ours, for docs/performance.md
  dist     make the packages that are handed out, in target/dist, and check each where
           nothing else is installed; --profile dev is quicker
  generate write the generated files anew
";

fn main() -> ExitCode {
    let command = std::env::args().nth(1).unwrap_or_default();
    let outcome = match command.as_str() {
        "test" => testing::test(),
        "check" => check(),
        "clients" => clients(),
        "typescript" => sdk_typescript::alone(),
        "explore" => explore(),
        "fuzz" => fuzz(),
        "stress" => stress(),
        "bench" => bench(),
        "dist" => dist::dist(),
        "generate" => generated::generate(),
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

/// For manual tests: `eval "$(cargo xtask clients)"`.
fn clients() -> anyhow::Result<()> {
    let mut missing = Vec::new();
    for (name, place) in clients::prepare(&mut missing) {
        println!("export {name}='{place}'");
    }
    anyhow::ensure!(missing.is_empty(), "could not be installed: {}", missing.join(", "));
    Ok(())
}

/// Runs property tests with other random cases than `test`, and many more.
fn explore() -> anyhow::Result<()> {
    let seed = std::process::id().to_string();
    eprintln!("the same again: PROPTEST_RNG_SEED={seed}");
    let pure = ["protocol", "session", "store", "gateway", "server"];
    let packages: Vec<String> = pure.iter().map(|name| format!("sessile-{name}")).collect();
    let mut args = vec!["test", "--release"];
    for package in &packages {
        args.extend(["--package", package]);
    }
    run::cargo_with_env(&args, &[("PROPTEST_CASES", "10000"), ("PROPTEST_RNG_SEED", &seed)])
}

fn check() -> anyhow::Result<()> {
    run::cargo(&["fmt", "--all", "--check"])?;
    run::cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])?;
    run::cargo(&["check", "--workspace", "--all-targets", "--features", "sessile/otlp"])?;
    tools::deny()?;
    generated::check()
}

/// Runs the long form of the test of the same name: a thousand sessions, 64 clients and a
/// hundred thousand runs, while the server is killed again and again.
fn stress() -> anyhow::Result<()> {
    let args = ["test", "--release", "--package", "sessile", "--test", "all", "stress::", "--"];
    let args = [&args[..], &["--nocapture"]].concat();
    let scale =
        std::env::var("SESSILE_STRESS").unwrap_or_else(|_| "1000,64,100000,3000".to_owned());
    run::cargo_with_env(&args, &[("SESSILE_STRESS", &scale)])
}

/// Runs the long form of the tests of the same name, with other requests each time. Both
/// tests run at once, each for the given time.
fn fuzz() -> anyhow::Result<()> {
    let seconds = std::env::args().nth(2).unwrap_or_else(|| "300".to_owned());
    anyhow::ensure!(seconds.parse::<u64>().is_ok(), "{seconds:?} is no number of seconds");
    let seed =
        std::env::var("SESSILE_FUZZ_SEED").unwrap_or_else(|_| std::process::id().to_string());
    eprintln!("the same again: SESSILE_FUZZ_SEED={seed} cargo xtask fuzz {seconds}");
    let (fuzzer, place) = clients::fuzzer()?;
    let args = ["test", "--workspace", "--test", "all", "fuzz::", "--", "--nocapture"];
    let env = [("SESSILE_FUZZ", &*seconds), ("SESSILE_FUZZ_SEED", &*seed), (fuzzer, &*place)];
    run::cargo_with_env(&args, &env)
}

fn bench() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(2).collect();
    let mut args: Vec<&str> = args.iter().map(String::as_str).collect();
    let python;
    if let Some(at) = args.iter().position(|arg| *arg == "--peers") {
        python = clients::peers()?;
        args.remove(at);
        args.splice(0..0, ["peers", "--python", &python]);
    }
    // Not the whole workspace: other features of the dependencies would build them all anew.
    run::cargo(&["build", "--release", "-p", "sessile", "-p", "sessile-bench", "--bins"])?;
    match args.first() {
        Some(&"typescript") => return sdk_typescript::bench(),
        Some(&"python") => return sdk_python::bench(),
        Some(&"sandbox") | None => {
            tools::prepare_bench();
            run::program("target/release/sessile-bench", &args)?;
        }
        Some(_) => run::program("target/release/sessile-bench", &args)?,
    }
    if args.is_empty() {
        sdk_typescript::bench()?;
        sdk_python::bench()?;
    }
    Ok(())
}
