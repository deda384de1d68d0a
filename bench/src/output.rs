//! 100 MB through a run, compared with a bare reader of a pipe.

use crate::session::Session;
use crate::stats::{Table, print_ratio};
use sessile_protocol::Language;
use std::io::Read;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const BYTES: u64 = 100_000_000;
const COMMAND: &str = "head -c 100000000 /dev/zero";

pub(crate) fn measure(sessile: &Path) -> anyhow::Result<()> {
    let mut table = Table::default();
    let mut session = Session::start(sessile, Language::Bash)?;
    let mut best = [Duration::MAX; 2];
    for _ in 0..5 {
        let start = Instant::now();
        let mut child =
            Command::new("bash").arg("-c").arg(COMMAND).stdout(Stdio::piped()).spawn()?;
        let mut total = 0;
        if let Some(mut stdout) = child.stdout.take() {
            let mut buffer = vec![0; 64 << 10];
            loop {
                match stdout.read(&mut buffer)? {
                    0 => break,
                    n => total += n as u64,
                }
            }
        }
        child.wait()?;
        anyhow::ensure!(total == BYTES);
        best[0] = best[0].min(start.elapsed());
        table.add("a bare pipe reader", start.elapsed());
        let start = Instant::now();
        let done = session.complete(COMMAND, 1 << 20)?;
        anyhow::ensure!(
            done.stdout.total == BYTES && done.stdout.stored == BYTES,
            "bytes are missing"
        );
        best[1] = best[1].min(start.elapsed());
        table.add("a run, every byte on disk", start.elapsed());
    }
    table.print(&[("a run, every byte on disk", "a bare pipe reader", Some(2.0))]);
    print_ratio("the same, best of five", best[1].as_secs_f64() / best[0].as_secs_f64(), None);
    let (private, _) = crate::memory::of(session.keeper)?;
    println!("  keeper's private memory afterwards: {private} kB");
    Ok(())
}
