//! Many clients on many sessions while the server is killed over and over:
//! every run that was asked for has exactly one record and its right output.
//!
//! The test is a short form; `cargo xtask stress` is the long one.

use serde_json::{Value, json};
use sessile_testkit::{Chance, Harness, Server, harness, until};
use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::Duration;

/// How much of it.
struct Scale {
    sessions: u64,
    clients: u64,
    runs: u64,
    /// Between two deaths of the server, which answers at least once in its life.
    life: Duration,
}

impl Scale {
    /// `SESSILE_STRESS=sessions,clients,runs,life_ms`, or the short form.
    fn wanted() -> Self {
        let text = std::env::var("SESSILE_STRESS").unwrap_or_else(|_| "24,8,600,300".to_owned());
        let numbers: Vec<u64> = text.split(',').map(|n| n.trim().parse().unwrap()).collect();
        let [sessions, clients, runs, life] = numbers[..] else { panic!("{text:?}") };
        Self { sessions, clients, runs, life: Duration::from_millis(life) }
    }
}

/// A client that stays connected, and connects again when it has to.
struct Client<'a> {
    address: &'a str,
    token: &'a str,
    /// Locked while it is replaced.
    server: &'a Mutex<Option<Server>>,
    connection: Option<BufReader<TcpStream>>,
}

impl Client<'_> {
    /// Asks until there is an answer. The key makes that safe.
    fn insist(&mut self, path: &str, key: &str, body: &Value) -> Value {
        until(path, || match self.ask(path, key, body) {
            Ok((200 | 201, answer)) => Some(answer),
            Ok((503 | 429, _)) => {
                self.connection = None;
                None
            }
            Ok((status, answer)) => panic!("{path}: {status} {answer}"),
            Err(_) => {
                self.connection = None;
                // Waits for the next server.
                drop(self.server.lock());
                None
            }
        })
    }

    fn ask(&mut self, path: &str, key: &str, body: &Value) -> std::io::Result<(u16, Value)> {
        let reader = match &mut self.connection {
            Some(reader) => reader,
            None => {
                let stream = TcpStream::connect(self.address)?;
                stream.set_read_timeout(Some(Duration::from_secs(60)))?;
                stream.set_nodelay(true)?;
                self.connection.insert(BufReader::new(stream))
            }
        };
        let body = body.to_string();
        let request = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nIdempotency-Key: {key}\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            self.token,
            body.len()
        );
        reader.get_mut().write_all(request.as_bytes())?;
        let broken = || std::io::Error::from(std::io::ErrorKind::UnexpectedEof);
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let status =
            line.split(' ').nth(1).and_then(|code| code.parse().ok()).ok_or_else(broken)?;
        let mut length = 0;
        loop {
            line.clear();
            if reader.read_line(&mut line)? == 0 {
                return Err(broken());
            }
            if line.trim().is_empty() {
                break;
            }
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse().map_err(|_| broken())?;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        Ok((status, serde_json::from_slice(&body)?))
    }
}

/// What the clients have got so far.
#[derive(Default)]
struct Progress {
    now: Mutex<Now>,
    changed: Condvar,
}

#[derive(Clone, Copy, Default)]
struct Now {
    answers: u64,
    is_over: bool,
}

impl Progress {
    fn note(&self, change: impl FnOnce(&mut Now)) {
        change(&mut self.now.lock().unwrap());
        self.changed.notify_all();
    }

    fn answers(&self) -> u64 {
        self.now.lock().unwrap().answers
    }

    /// Waits for an answer after so many, or the end. A server that is killed before it has
    /// answered would leave the clients without progress on a busy machine.
    fn next(&self, before: u64) -> Now {
        let now = self.now.lock().unwrap();
        let waits = |now: &mut Now| now.answers == before && !now.is_over;
        *self.changed.wait_while(now, waits).unwrap()
    }
}

/// What a session's runs are in: mostly shells, some Python, a few Node.
fn language(session: u64) -> &'static str {
    match session % 24 {
        0..=17 => "bash",
        18 => "sh",
        19 => "zsh",
        20..=22 => "python",
        _ => "node",
    }
}

/// Appends a line to the session's file, and prints it with the number of runs
/// that the session remembers.
fn command(language: &str, file: &str, mark: &str) -> String {
    match language {
        "python" => format!(
            "n = globals().get('n', 0) + 1\nwith open('{file}', 'a') as f: _ = f.write('{mark}\\n')\nprint('{mark}', n)"
        ),
        "node" => format!(
            "globalThis.n = (globalThis.n ?? 0) + 1; require('fs').appendFileSync('{file}', '{mark}\\n'); console.log('{mark}', n)"
        ),
        _ => format!("n=$((n+1)); echo {mark} >> {file}; echo {mark} $n"),
    }
}

#[test]
fn every_run_has_one_record_and_its_output_however_often_the_server_dies() {
    let scale = Scale::wanted();
    let h = harness!();
    let languages: Vec<&str> = Harness::shells(&["sh", "zsh"]);
    let first = h.serve();
    let (address, token) = (first.address(), first.token().to_owned());
    let server = Mutex::new(Some(first));
    let new_client =
        || Client { address: &address, token: &token, server: &server, connection: None };
    let deaths = AtomicU64::new(0);
    let answers: Mutex<BTreeMap<u64, Vec<(u64, String)>>> = Mutex::default();
    let progress = Progress::default();
    let ids: Vec<String> = {
        let mut client = new_client();
        (0..scale.sessions)
            .map(|session| {
                let body = json!({"max_history": 100_000, "idle_timeout": 0});
                let started = client.insist("/v1/sessions", &format!("start-{session}"), &body);
                started["session_id"].as_str().unwrap().to_owned()
            })
            .collect()
    };
    std::thread::scope(|scope| {
        let killer = scope.spawn(|| {
            let mut chance = Chance::new();
            let life = u64::try_from(scale.life.as_millis()).unwrap();
            loop {
                let before = progress.answers();
                // No event to wait for: the server dies at any moment of its work.
                std::thread::sleep(Duration::from_millis(life / 2 + chance.below(life)));
                if progress.next(before).is_over {
                    break;
                }
                let mut server = server.lock().unwrap();
                if let Some(server) = server.take() {
                    server.kill();
                }
                *server = Some(h.serve_at(&address, &[]));
                deaths.fetch_add(1, Ordering::Relaxed);
            }
        });
        let clients: Vec<_> = (0..scale.clients)
            .map(|number| {
                let (ids, languages, answers, scale) = (&ids, &languages, &answers, &scale);
                let (new_client, progress) = (&new_client, &progress);
                scope.spawn(move || {
                    let mut client = new_client();
                    let mut chance = Chance::of(number);
                    for run in 0..scale.runs / scale.clients {
                        let session = chance.below(scale.sessions);
                        let mut language = language(session);
                        if matches!(language, "sh" | "zsh") && !languages.contains(&language) {
                            language = "bash";
                        }
                        let mark = format!("m{number}-{run}");
                        let text = command(language, &format!("log{session}"), &mark);
                        let body = json!({"command": text, "language": language, "timeout": 0});
                        let id = &ids[usize::try_from(session).unwrap()];
                        let path = format!("/v1/sessions/{id}/exec");
                        let answer = client.insist(&path, &mark, &body);
                        progress.note(|now| now.answers += 1);
                        let printed = answer["stdout"].as_str().unwrap().to_owned();
                        assert!(printed.starts_with(&format!("{mark} ")), "{mark}: {answer}");
                        let run = answer["run"].as_u64().unwrap();
                        answers.lock().unwrap().entry(session).or_default().push((run, printed));
                    }
                })
            })
            .collect();
        let ends: Vec<_> = clients.into_iter().map(|client| client.join()).collect();
        // Before a failure is told, which waits for the killer.
        progress.note(|now| now.is_over = true);
        killer.join().unwrap();
        ends.into_iter().for_each(|end| end.unwrap());
    });
    eprintln!("the server died {} times", deaths.load(Ordering::Relaxed));
    assert!(deaths.load(Ordering::Relaxed) > 0);
    for (session, answers) in answers.into_inner().unwrap() {
        check_session(&h, &ids[usize::try_from(session).unwrap()], session, answers);
    }
    drop(server);
}

/// One record for each run, one effect, and the count that it printed.
fn check_session(h: &Harness, id: &str, session: u64, mut answers: Vec<(u64, String)>) {
    answers.sort_unstable();
    for (position, (run, printed)) in answers.iter().enumerate() {
        assert_eq!(*run, position as u64 + 1, "session {session} has lost or doubled a run");
        let count = printed.trim().rsplit(' ').next().unwrap();
        assert_eq!(count, run.to_string(), "session {session}: {printed}");
    }
    let effects = std::fs::read_to_string(h.path(&format!("log{session}"))).unwrap();
    let marks: Vec<&str> = answers.iter().map(|(_, p)| p.split(' ').next().unwrap()).collect();
    assert_eq!(effects.lines().collect::<Vec<_>>(), marks, "session {session}");
    let history = h.sessile(&["history", id, "--limit", "100000"]).exits(0).json();
    let mut records: HashMap<u64, u64> = HashMap::new();
    for entry in history.as_array().unwrap() {
        *records.entry(entry["run"].as_u64().unwrap()).or_default() += 1;
    }
    let expected: HashMap<u64, u64> = answers.iter().map(|(run, _)| (*run, 1)).collect();
    assert_eq!(records, expected, "session {session}");
}
