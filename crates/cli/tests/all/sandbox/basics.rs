//! A session in a sandbox, with a policy that is the same for all paths.

use rustix::process::Pid;
use sessile_testkit::{Harness, Process, harness, needs};
use std::os::unix::fs::{PermissionsExt, symlink};

const OVERLAY: &[&str] = &["--sandbox", "full-access"];

#[test]
fn the_workspace_is_the_working_directory_and_the_host_stays_as_it_was() {
    let h = harness!();
    std::fs::write(h.path("a"), "of the host\n").unwrap();
    let s = h.session_with(OVERLAY);
    s.run("pwd; cat a; echo inside >a; echo new >b; cat a b")
        .exits(0)
        .prints("/workspace\nof the host\ninside\nnew\n");
    assert_eq!(std::fs::read_to_string(h.path("a")).unwrap(), "of the host\n");
    assert!(!h.path("b").exists());

    let direct = h.session_with(&["--sandbox", "full-access", "--files", "direct"]);
    direct.run("echo direct >b; cat a b").exits(0).prints("of the host\ndirect\n");
    assert_eq!(std::fs::read_to_string(h.path("b")).unwrap(), "direct\n");

    let reader = h.session_with(&["--sandbox", "read-only"]);
    reader.run("cat a; touch c; rm a; mv a d").exits(1).prints("of the host\n");
    assert!(h.path("a").exists() && !h.path("c").exists());
}

#[test]
fn every_language_is_there_and_remembers() {
    let h = harness!();
    let s = h.session_with(OVERLAY);
    for shell in Harness::shells(&["bash", "zsh", "sh"]) {
        s.run_in(shell, "x=41; id -un").exits(0).prints("agent\n");
        s.run_in(shell, "echo $((x + 1))").exits(0).prints("42\n").is_kept();
    }
    s.run_in("python", "x = 41").exits(0);
    s.run_in("python", "print(x + 1)").exits(0).prints("42\n").is_kept();
    s.run_in("node", "let x = 41").exits(0);
    s.run_in("node", "console.log(x + 1)").exits(0).prints("42\n").is_kept();
}

#[test]
fn a_kernel_that_ends_comes_back_and_a_keeper_that_is_killed_leaves_nothing() {
    let h = harness!();
    let s = h.session_with(OVERLAY);
    s.run("x=5; echo kept >file; echo home >~/file; exit 3").exits(3).is_restarted();
    s.run("echo $x; cat file ~/file").exits(0).prints("5\nkept\nhome\n").is_kept();
    s.run("setsid sleep 1000 & nohup sleep 1000 >/dev/null 2>&1 &").exits(0);
    s.wait_captured(3);
    let keeper = s.keeper();
    let inside = sessile_proc::Process::new(Pid::from_raw(keeper.pid()).unwrap()).descendants();
    assert!(inside.len() >= 4, "init, bash and what it has left: {inside:?}");
    keeper.kill().wait_gone();
    inside.iter().for_each(|pid| Process::of(pid.as_raw_nonzero().get()).wait_gone());
    s.run("echo $x; cat file").exits(0).prints("5\nkept\n").is_restored_as_of(3);
}

/// As when the machine is out of memory.
#[test]
fn a_session_goes_on_in_a_new_sandbox_when_the_first_process_inside_is_killed() {
    let h = harness!();
    let s = h.session_with(OVERLAY);
    s.run("x=5; echo kept >file").exits(0);
    for run in 1..4 {
        s.wait_captured(run);
        let shown = |pid: &Pid| sessile_proc::Process::new(*pid).command_line(100);
        let mut children = s.keeper().entry().children().into_iter();
        let first = children.find(|pid| shown(pid).as_deref() == Some("sessile sandbox"));
        let first = first.expect("a first process").as_raw_nonzero().get();
        Process::of(first).kill().wait_gone();
        s.run("echo $x; cat file").exits(0).prints("5\nkept\n").is_restored_as_of(run);
    }
}

#[test]
fn an_ordinary_user_has_it_too() {
    if !rustix::process::geteuid().is_root() {
        return needs::not_permitted("only root can start a session as another user");
    }
    let h = Harness::unprivileged(env!("CARGO_BIN_EXE_sessile"));
    let s = h.session_with(OVERLAY);
    s.run("id -u; echo x >y; cat y").exits(0).prints("1000\nx\n");
    s.run_in("python", "print(6 * 7)").exits(0).prints("42\n");
}

#[test]
fn a_rust_toolchain_in_a_home_is_there_and_what_is_beside_it_is_not() {
    let h = harness!();
    let tools = tempfile::tempdir().unwrap();
    let script = |path: &str, text: &str| {
        let path = tools.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    script("cargo/bin/rustup", "#!/bin/sh\nexec $RUSTUP_HOME/toolchains/stable/bin/cargo\n");
    symlink("rustup", tools.path().join("cargo/bin/cargo")).unwrap();
    script("cargo/credentials.toml", "token");
    script("rustup/toolchains/stable/bin/cargo", "#!/bin/sh\necho cargo of $RUSTUP_HOME\n");
    script("rustup/settings.toml", "default_toolchain = 'stable'\n");
    script("rustup/downloads/x", "");
    let root = tools.path().display();
    let [path, rustup] =
        [format!("PATH={root}/cargo/bin:/usr/bin:/bin"), format!("RUSTUP_HOME={root}/rustup")];
    let args = ["--sandbox", "full-access", "--env", &path, "--env", &rustup];
    let s = h.session_with(&args);
    s.run("cargo --version").exits(0).prints(&format!("cargo of {root}/rustup\n"));
    s.run(format!("ls {root}/cargo {root}/rustup"))
        .prints(&format!("{root}/cargo:\nbin\n\n{root}/rustup:\nsettings.toml\ntoolchains\n"));
}

#[test]
fn packages_whose_certificates_are_hidden_use_those_of_the_system() {
    let h = harness!();
    let s = h.session_with(&["--sandbox"]);
    s.run("mkdir -p certifi; echo x >certifi/cacert.pem; cat certifi/cacert.pem").exits(1);
    let load = "import os, ssl; context = ssl.create_default_context(cafile=os.environ[name])";
    for name in ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE"] {
        s.run_in(
            "python",
            format!("name = '{name}'; {load}; print(len(context.get_ca_certs()) > 0)"),
        )
        .exits(0)
        .prints("True\n");
    }
}
