use crate::args;
use crate::confinement::Confinement;
use crate::output;
use crate::progress::Progress;
use crate::settings::Settings;
use anyhow::bail;
use clap::Args;
use sessile_client::{NewSession, SavedTo};
use sessile_gateway::answer::Started;
use sessile_protocol::Auto;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Start a session and print its id
///
/// SHELL is bash, sh, dash, zsh, python3 or node, or the path of one. The
/// session lives until `end`, or until nothing was run in it for the idle
/// timeout.
///
/// With --from, it starts with the state of another session: imports are done,
/// variables are set. Python is copied live, which takes milliseconds however
/// long its preparation took. History, run numbers, directory and settings are
/// its own.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    sessile start\n  \
    sessile start zsh --env STAGE=test --cwd ./project\n  \
    sessile start --idle-timeout 2h --command-timeout 5m\n  \
    sessile start python3 --durable\n  \
    sessile start --from sess_… --cwd ./project\n  \
    sessile start --durable=s3://bucket/sessions\n  \
    sessile start --sandbox read-only --workspace ./project")]
pub(crate) struct Start {
    /// The program of the session
    #[arg(default_value = DEFAULT_SHELL, conflicts_with = "from")]
    shell: String,
    /// Start with the state of this session, which must be idle (see --wait)
    #[arg(long, value_name = "ID")]
    from: Option<String>,
    /// With --from: wait until that session is idle, instead of failing
    #[arg(long, requires = "from")]
    wait: bool,
    #[command(flatten)]
    options: Options,
}

const DEFAULT_SHELL: &str = "bash";

#[derive(Clone, Debug, Args)]
pub(crate) struct Options {
    /// Set an environment variable (may be repeated)
    #[arg(long = "env", value_name = "K=V", value_parser = args::assignment)]
    pub(crate) env: Vec<(String, String)>,
    /// Directory to start in [default: the current one]
    #[arg(long, value_name = "DIR", visible_alias = "workspace")]
    pub(crate) cwd: Option<PathBuf>,
    /// End the session after this long without a run, a background job or an attached client;
    /// 0: never
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = args::duration)]
    pub(crate) idle_timeout: Duration,
    /// Count only runs for --idle-timeout, not jobs or attached people
    #[arg(long)]
    pub(crate) idle_without_runs: bool,
    /// Interrupt a command after this long; 0: never
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = args::duration)]
    pub(crate) command_timeout: Duration,
    /// Runs to keep in the history
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub(crate) max_history: u64,
    /// Maximum bytes of each stream of a run to keep on disk
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = args::size)]
    pub(crate) output_cap: u64,
    /// A name for the session, shown by `list`
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// Save the session in idle time, so that it survives a reboot: on this disk, and in the
    /// configured store or in file:///…, s3://…, gs://… or az://…
    #[arg(
        long, value_name = "URL", num_args = 0..=1, require_equals = true,
        default_missing_value = "", value_parser = args::saved_to
    )]
    pub(crate) durable: Option<SavedTo>,
    /// Take a checkpoint before each run, and keep the last N: see `undo`
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) auto: Option<u32>,
    /// With --auto: of the files of the workspace, too. With --sandbox: where
    /// writes go, overlay (a layer of the session) or direct [default: overlay]
    #[arg(long, value_name = "overlay|direct", num_args = 0..=1, default_missing_value = "")]
    pub(crate) files: Vec<String>,
    #[command(flatten)]
    pub(crate) confinement: Confinement,
}

impl Start {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let from = self.from.as_deref().map(|id| settings.session(id)).transpose()?;
        let new = self.options.session(self.shell)?;
        let durable = settings.saved_to(new.durable.clone())?;
        let new = NewSession { from, wait: self.wait, durable, ..new };
        let progress = Progress::of("starting a session");
        let (_, metadata) = settings.launcher.create(&settings.sessions, new)?;
        drop(progress);
        output::json(&Started::from(&metadata))?;
        Ok(ExitCode::SUCCESS)
    }
}

impl Options {
    fn session(self, mut program: String) -> anyhow::Result<NewSession> {
        let (mut with_files, mut mode) = (false, None);
        for word in self.files {
            match word.as_str() {
                "" => with_files = true,
                word => match args::file_mode(word) {
                    Ok(said) => mode = Some(said),
                    // The word behind the bare option names a shell.
                    Err(_) if program == DEFAULT_SHELL && self.auto.is_some() => {
                        (with_files, program) = (true, word.to_owned());
                    }
                    Err(why) => bail!("--files {word}: {why}"),
                },
            }
        }
        if with_files && self.auto.is_none() {
            bail!("--files alone is for --auto N; with --sandbox say --files overlay or direct");
        }
        let sandbox = self.confinement.policy(mode)?;
        Ok(NewSession {
            id: None,
            program,
            from: None,
            wait: false,
            from_keeper: None,
            cwd: self.cwd,
            env: self.env.into_iter().collect(),
            idle_timeout_ms: milliseconds(self.idle_timeout),
            idle_without_runs: self.idle_without_runs,
            command_timeout_ms: milliseconds(self.command_timeout),
            max_history: self.max_history,
            output_cap: self.output_cap,
            max_queue: None,
            workspace: None,
            session_key: None,
            name: self.name,
            owner: None,
            durable: self.durable,
            auto: self.auto.map(|keep| Auto { keep, files: with_files }),
            sandbox,
        })
    }
}

pub(crate) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
