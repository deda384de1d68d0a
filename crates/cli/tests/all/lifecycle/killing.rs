//! Whatever is killed, and whenever: the session is in the old state or in the
//! new one, with its files, and nothing is left that nobody owns.

use sessile_testkit::{Chance, Client, Harness, Process, Session, harness, processes_with, until};

const FILES: usize = 60;

/// The number of moments that each of these tests tries: `PROPTEST_CASES`, or one for
/// each victim.
fn rounds() -> usize {
    let asked = std::env::var("PROPTEST_CASES").ok();
    asked.map_or(VICTIMS.len(), |text| text.parse().unwrap())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Keeper,
    Guardian,
    /// A worker, an image, a kernel: whatever is the keeper's youngest.
    Youngest,
    Shell,
    Python,
    Client,
}

const VICTIMS: [Victim; 6] = [
    Victim::Keeper,
    Victim::Guardian,
    Victim::Youngest,
    Victim::Shell,
    Victim::Python,
    Victim::Client,
];

struct Scene<'h> {
    session: Session<'h>,
    keeper: Process,
    guardian: Process,
    shell: Process,
    python: Process,
    files: std::path::PathBuf,
}

impl<'h> Scene<'h> {
    /// A session whose variables and files say 2, with a checkpoint where they
    /// say 1.
    fn set(h: &'h Harness, name: &str) -> Self {
        let files = h.path(name);
        std::fs::create_dir_all(&files).unwrap();
        let session = h.session_with(&["--cwd", files.to_str().unwrap()]);
        let write = |n: u32| {
            format!(
                "x={n}; for i in $(seq {FILES}); do echo {n} >f$i; done; rm -f only*; : >only{n}"
            )
        };
        session.run(write(1)).exits(0);
        let python = Process::of(session.python("x = 1; import os; print(os.getpid())").number());
        session.checkpoint(&["--files", "--name", "one"]);
        session.python("x = 2").exits(0);
        let run = session.run(write(2)).exits(0).run();
        session.wait_captured(run);
        let shell = session.kernel();
        let keeper = session.keeper();
        let guardian = keeper.parent().expect("a guardian");
        Self { session, keeper, guardian, shell, python, files }
    }

    fn kill(&self, victim: Victim, client: &Client) {
        let kill = |process: &Process| {
            process.kill();
        };
        let youngest = || self.keeper.children().into_iter().max_by_key(Process::pid);
        match victim {
            Victim::Keeper => kill(&self.keeper),
            Victim::Guardian => kill(&self.guardian),
            Victim::Youngest => youngest().iter().for_each(kill),
            Victim::Shell => kill(&self.shell),
            Victim::Python => kill(&self.python),
            Victim::Client => kill(&client.process()),
        }
    }

    /// What files and shell agree upon.
    #[track_caller]
    fn state(&self, what: &str) -> u32 {
        // First: it waits until whatever is being done is done.
        let of_shell = self.session.run("echo $x").stdout().trim().to_owned();
        let mut said: Vec<String> = std::fs::read_dir(&self.files)
            .unwrap()
            .flatten()
            .filter(|entry| entry.file_name().as_encoded_bytes().starts_with(b"f"))
            .map(|entry| std::fs::read_to_string(entry.path()).unwrap().trim().to_owned())
            .collect();
        assert_eq!(said.len(), FILES, "{what}");
        said.push(of_shell);
        for n in [1, 2] {
            if self.files.join(format!("only{n}")).exists() {
                said.push(n.to_string());
            }
        }
        said.sort();
        said.dedup();
        assert_eq!(said.len(), 1, "{what}: half of it: {said:?}");
        said[0].parse().unwrap()
    }

    /// What Python has, unless that was lost.
    fn of_python(&self) -> Option<u32> {
        let answer = self.session.python("globals().get('x')");
        answer.json()["result"].as_str().and_then(|x| x.parse().ok())
    }

    #[track_caller]
    fn leave(self, h: &Harness, what: &str) {
        let listed = h.list();
        h.sessile(&["end", "--all"]).exits(0);
        for session in listed {
            let id = session["session_id"].as_str().unwrap().to_owned();
            let mark = format!("SESSILE_SESSION_ID={id}");
            until(&format!("the processes of {id} to end after {what}"), || {
                processes_with(&mark).is_empty().then_some(())
            });
        }
        std::fs::remove_dir_all(self.files).unwrap();
    }
}

/// Kills somebody at some moment of what `args` ask for; then has it looked at
/// what the client was told and where the session is.
#[track_caller]
fn torture(args: &[&str], check: impl Fn(&Scene<'_>, Victim, Option<bool>, &str)) {
    let h = harness!();
    let mut chance = Chance::new();
    for round in 0..rounds() {
        let scene = Scene::set(&h, &format!("w{round}"));
        let victim = VICTIMS[round % VICTIMS.len()];
        let before = scene.keeper.children().len();
        let client = h.begin(&[&[args[0], scene.session.id()], &args[1..]].concat(), b"");
        // Some at once, some when there is one process more; then after so many looks.
        if chance.below(4) > 0 {
            let mut looks = 0;
            until("a process, or the end", || {
                looks += 1;
                let has_more = scene.keeper.children().len() > before;
                (has_more || !client.process().is_alive() || looks > 20).then_some(())
            });
        }
        let looks = chance.below(40);
        for _ in 0..looks {
            let _ = scene.keeper.children();
        }
        scene.kill(victim, &client);
        let what = format!("round {round}: {args:?}, {victim:?} killed after {looks} looks");
        eprintln!("{what}");
        let is_told = victim != Victim::Client;
        let outcome = client.finish();
        if victim == Victim::Keeper {
            scene.keeper.wait_gone();
        }
        let what = format!("{what}; the client said {:?} {:?}", outcome.text(), outcome.errors());
        check(&scene, victim, is_told.then_some(outcome.status.success()), &what);
        scene.leave(&h, &what);
    }
}

#[test]
fn a_rewind_with_files_is_done_or_not() {
    torture(&["rewind", "one"], |scene, victim, success, what| {
        let state = scene.state(what);
        if success == Some(true) {
            assert_eq!(state, 1, "{what}");
        }
        if success == Some(false) && victim != Victim::Keeper {
            assert_eq!(state, 2, "{what}");
        }
        if let Some(python) = scene.of_python() {
            assert_eq!(python, state, "{what}");
        }
        // And from there on it works.
        if victim != Victim::Keeper {
            scene.session.run("x=5");
            let told = scene.session.call("rewind", &["one"]);
            if told.status.success() {
                assert_eq!(scene.state(what), 1, "{what}");
            } else {
                assert!(told.errors().contains("python"), "{what}: {}", told.errors());
            }
        }
    });
}

#[test]
fn a_checkpoint_is_taken_or_not() {
    torture(&["checkpoint", "--files", "--name", "two"], |scene, victim, success, what| {
        assert_eq!(scene.state(what), 2, "{what}");
        let names = scene.session.checkpoints();
        assert!(names.contains(&"one".to_owned()), "{what}: {names:?}");
        // A keeper may be killed between taking it and telling.
        if let Some(is_there) = success.filter(|is_there| *is_there || victim != Victim::Keeper) {
            assert_eq!(names.contains(&"two".to_owned()), is_there, "{what}");
        }
        if names.contains(&"two".to_owned()) {
            scene.session.run("x=3; echo 3 >f1; rm f2").exits(0);
            let told = scene.session.call("rewind", &["two"]);
            if told.status.success() {
                assert_eq!(scene.state(what), 2, "{what}");
            } else {
                assert!(told.errors().contains("python"), "{what}: {}", told.errors());
            }
        }
    });
}

#[test]
fn forks_are_whole_or_not_there() {
    torture(&["fork", "--count", "2", "--files", "copy"], |scene, _, _, what| {
        assert_eq!(scene.state(what), 2, "{what}");
        let h = scene.session.harness();
        for listed in h.list() {
            let fork = h.session_called(listed["session_id"].as_str().unwrap());
            if fork.id() == scene.session.id() || listed["status"] == "terminated" {
                continue;
            }
            let look = "echo $x $(cat f1) $(ls f* | wc -l)";
            let told = fork.call("exec", &["--raw", "--", look]);
            // Of several, those that were made are ended when one cannot be.
            if !told.status.success() {
                until(&format!("the end of an unwanted fork after {what}: {told:?}"), || {
                    let is_over = |listed: &serde_json::Value| {
                        listed["session_id"] == fork.id() && listed["status"] == "terminated"
                    };
                    h.list().iter().any(is_over).then_some(())
                });
                continue;
            }
            assert_eq!(told.text(), format!("2 2 {FILES}\n"), "{what}: {}", told.errors());
        }
    });
}

#[test]
fn a_save_leaves_a_whole_file_or_none() {
    torture(&["save", "-o", "saved.sessile", "--files"], |scene, _, success, what| {
        assert_eq!(scene.state(what), 2, "{what}");
        let h = scene.session.harness();
        let path = h.path("saved.sessile");
        if success == Some(true) {
            assert!(path.exists(), "{what}");
        }
        if path.exists() {
            let restored = h.sessile(&["restore", "saved.sessile", "--trust"]);
            assert!(restored.status.success(), "{what}: {}", restored.errors());
            std::fs::remove_file(path).unwrap();
        }
    });
}
