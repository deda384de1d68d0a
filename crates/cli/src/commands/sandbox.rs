use crate::display::Form;
use crate::output;
use crate::reader::Reader;
use crate::settings::Settings;
use anyhow::{Context, bail};
use clap::{Args, Subcommand};
use serde::Serialize;
use serde_json::Value;
use sessile_sandbox::check::{Finding, Report, report};
use sessile_sandbox::policy::PRESETS;
use sessile_sandbox::{Draft, Level, Policy, Rule};
use std::fmt::Write;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;
use std::process::ExitCode;

/// Check what sandboxes this machine can enforce, and explain the levels of paths
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    sessile sandbox check\n  \
    sessile sandbox explain development .env src/main.rs\n  \
    sessile sandbox explain policy.toml build/out.o --allow '/build/**=write'")]
pub(crate) struct Sandbox {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Show what this machine can enforce, what it cannot, and how to change that
    ///
    /// It tries: sandboxes are built and taken down again. The exit code is 0 if a
    /// bare --sandbox can be had, 1 if not.
    Check {
        /// JSON at a terminal, too
        #[arg(long)]
        json: bool,
    },
    /// Show the levels of paths in the workspace, and the rules that set them
    Explain {
        /// A preset, a policy file, or a session that has a sandbox
        #[arg(value_name = "POLICY|ID")]
        policy: String,
        /// Paths in the workspace, which need not exist
        #[arg(required = true)]
        paths: Vec<String>,
        /// A further rule, PATTERN=LEVEL[@PRIORITY] (may be repeated)
        #[arg(long, value_name = "RULE")]
        allow: Vec<String>,
        /// JSON at a terminal, too
        #[arg(long)]
        json: bool,
    },
}

/// A path of the workspace, and the rule that sets its level.
#[derive(Debug, Serialize)]
struct ExplainedPath<'a> {
    path: &'a str,
    permission: Level,
    because: &'a str,
}

impl Sandbox {
    pub(crate) fn execute(self, settings: &Settings) -> anyhow::Result<ExitCode> {
        let (policy, paths, allow, json) = match self.action {
            Action::Check { json } => return check(settings, json),
            Action::Explain { policy, paths, allow, json } => (policy, paths, allow, json),
        };
        let mut policy = find(&policy, settings)?;
        for text in &allow {
            policy.add(Rule::parse(text)?);
        }
        let paths = paths.iter().map(|path| within(path)).collect::<anyhow::Result<Vec<_>>>()?;
        let told: Vec<_> =
            paths.iter().map(|path| (path, policy.explain(path.as_bytes()))).collect();
        Form::of_stdout(json).print(
            || -> Vec<ExplainedPath<'_>> {
                let rows = told.iter();
                rows.map(|(path, (verdict, because))| ExplainedPath {
                    path,
                    permission: verdict.level,
                    because,
                })
                .collect()
            },
            |_| {
                let mut text = String::new();
                for (path, (verdict, why)) in &told {
                    let _ = writeln!(text, "{path}: {} ({why})", verdict.level);
                }
                text
            },
        )?;
        Ok(ExitCode::SUCCESS)
    }
}

/// Tries what this machine can enforce, in a temporary directory.
fn check(settings: &Settings, json: bool) -> anyhow::Result<ExitCode> {
    let above = settings.launcher.user().root();
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(above);
    made.with_context(|| format!("cannot make {}", above.display()))?;
    let place = above.join(format!("check-{}", std::process::id()));
    let found = report(&place);
    // Nothing in it is mounted any more.
    let _ = std::fs::remove_dir_all(&place);
    let found = found.with_context(|| format!("cannot try it in {}", place.display()))?;
    let code = if found.ok { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    Form::of_stdout(json).print(|| &found, |_| people(&found))?;
    Ok(code)
}

fn people(found: &Report) -> String {
    let row = |finding: &Finding| {
        vec![finding.what.to_owned(), finding.status.as_str().to_owned(), finding.by.clone()]
    };
    let rows: Vec<Vec<String>> = found.findings.iter().map(row).collect();
    let mut text = output::table(&["WHAT", "STATUS", "BY"], &rows);
    text.push('\n');
    for tried in &found.presets {
        let outcome = tried.why.as_deref().unwrap_or("can be had");
        let mark = if tried.preset == found.default_preset { " (the default)" } else { "" };
        let _ = writeln!(text, "{}{mark}: {outcome}", tried.preset);
    }
    let mut remedies: Vec<(&str, &str)> = Vec::new();
    for finding in &found.findings {
        let told = finding
            .remedy
            .as_deref()
            .map(|remedy| remedy.strip_prefix("an administrator can allow it: ").unwrap_or(remedy));
        if let Some(remedy) = told.map(|remedy| remedy.trim_matches('`'))
            && !remedies.iter().any(|(_, known)| *known == remedy)
        {
            remedies.push((finding.what, remedy));
        }
    }
    if !remedies.is_empty() {
        text.push_str("\nwhat to do:\n");
    }
    for (what, remedy) in remedies {
        let _ = writeln!(text, "  {what}: {remedy}");
    }
    text
}

/// Returns the policy of a preset, a file, or a session.
fn find(word: &str, settings: &Settings) -> anyhow::Result<Policy> {
    if PRESETS.iter().any(|(name, _)| *name == word) {
        return Ok(Draft::of_preset(word).resolve()?);
    }
    if Path::new(word).is_file() {
        let text = std::fs::read_to_string(word).with_context(|| format!("cannot read {word}"))?;
        return Ok(Draft::from_toml(word, &text)?.resolve()?);
    }
    let presets = PRESETS.map(|(name, _)| name).join(", ");
    let reader = Reader::find(settings, word)
        .with_context(|| format!("{word} is no preset ({presets}), no file, and no session"))?;
    let metadata: Value = reader.directory.read_json("metadata.json")?;
    match metadata.get("sandbox") {
        Some(policy) if !policy.is_null() => {
            serde_json::from_value(policy.clone()).context("its policy cannot be read")
        }
        Some(_) | None => bail!("session {word} has no sandbox: it can do what its user can"),
    }
}

/// Returns a path for the rules: relative to the workspace, which is `/workspace` inside.
fn within(path: &str) -> anyhow::Result<String> {
    let inside = match path.strip_prefix("/workspace") {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => rest,
        Some(_) | None => path,
    };
    let names: Vec<&str> =
        inside.split('/').filter(|name| !name.is_empty() && *name != ".").collect();
    if names.contains(&"..") {
        bail!("{path}: say the path without `..`");
    }
    Ok(format!("/{}", names.join("/")))
}
