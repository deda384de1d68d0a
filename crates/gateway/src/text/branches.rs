//! Forks and checkpoints, in a few lines.

use super::excerpt::clip;
use sessile_protocol::{
    Carried, CarriedKernel, CheckpointView, ForkedView, LeftBehind, RestoredFiles, RewoundView,
    RunNo,
};
use std::fmt::Write;

/// How many items of one kind are listed; the structured answer has all of them.
const LISTED: usize = 20;

/// How many characters of an item are shown: enough to recognize it.
const THING: usize = 200;

#[must_use]
pub fn forked(view: &ForkedView) -> String {
    let ids: Vec<&str> = view.forks.iter().map(|fork| fork.session.as_str()).collect();
    let mut text = format!(
        "{} with the state after run {}: {}",
        if ids.len() == 1 { "a new session" } else { "new sessions" },
        view.as_of_run,
        ids.join(", ")
    );
    add_kernels(&mut text, &view.kernels);
    add_left(&mut text, "not carried over", &view.left);
    text
}

#[must_use]
pub fn checkpointed(view: &CheckpointView) -> String {
    let mut text = format!("checkpoint {:?} has the state after run {}", view.name, view.as_of_run);
    if let Some(files) = &view.files {
        let _ = write!(text, ", and {} files", files.files);
    }
    add_kernels(&mut text, &view.kernels);
    add_left(&mut text, "not in it", &view.left);
    if let Some(files) = view.files.as_ref().filter(|files| files.left_out > 0) {
        add_left(&mut text, &format!("{} files are left out", files.left_out), &files.examples);
    }
    text
}

/// Lists checkpoints, one per line, oldest first.
#[must_use]
pub fn checkpoints(views: &[CheckpointView]) -> String {
    if views.is_empty() {
        return "no checkpoints".to_owned();
    }
    let line = |view: &CheckpointView| {
        let kernels: Vec<&str> = view.kernels.iter().map(|k| k.language.as_str()).collect();
        let files = match &view.files {
            Some(files) => format!(", {} files", files.files),
            None => String::new(),
        };
        let kernels =
            if kernels.is_empty() { "nothing yet".to_owned() } else { kernels.join(", ") };
        format!("{}: after run {}, {kernels}{files}", view.name, view.as_of_run)
    };
    views.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[must_use]
pub fn rewound(view: &RewoundView) -> String {
    let undone = match view.undone.as_slice() {
        [] => "no run is taken back".to_owned(),
        [run] => format!("run {run} is taken back"),
        runs => format!("runs {} are taken back", listed(runs)),
    };
    let mut text = format!("back at checkpoint {:?}: {undone}", view.checkpoint);
    if let Some(files) = &view.files {
        add_files(&mut text, files);
    }
    add_kernels(&mut text, &view.kernels);
    add_left(&mut text, "not taken back", &view.left);
    text
}

fn listed(runs: &[RunNo]) -> String {
    runs.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

fn add_files(text: &mut String, files: &RestoredFiles) {
    let _ = write!(text, "\nfiles: {} written, {} removed", files.written, files.removed);
    if let Some(before) = &files.before {
        let _ = write!(text, "; checkpoint {before:?} has them as they were before");
    }
    add_left(text, "problems", &files.problems);
}

fn add_kernels(text: &mut String, kernels: &[CarriedKernel]) {
    for kernel in kernels {
        let language = kernel.language.as_str();
        let _ = match kernel.carried {
            Carried::Live => write!(text, "\n{language}: live, with all that it has loaded"),
            Carried::Saved => {
                write!(text, "\n{language}: its state as of run {}", kernel.as_of_run)
            }
            Carried::Busy => write!(text, "\n{language}: had a run, and is not part of it"),
            Carried::Lost => write!(text, "\n{language}: its copy has ended; its state is gone"),
        };
    }
}

pub(super) fn add_left(text: &mut String, title: &str, left: &[LeftBehind]) {
    if left.is_empty() {
        return;
    }
    let _ = write!(text, "\n{title}:");
    for thing in left.iter().take(LISTED) {
        let language = thing.language.map(|l| format!("{} ", l.as_str())).unwrap_or_default();
        let line = format!("{language}{}: {}", thing.name, thing.reason);
        let _ = write!(text, "\n- {}", clip(&line, THING));
    }
    if left.len() > LISTED {
        let _ = write!(text, "\n- and {} more", left.len() - LISTED);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sessile_protocol::Language;

    #[test]
    fn a_rewind_says_what_was_taken_back_and_what_was_not() {
        let kernels = vec![CarriedKernel {
            language: Language::Python,
            as_of_run: RunNo(2),
            carried: Carried::Live,
        }];
        let left = LeftBehind {
            language: None,
            name: "process 7 (sleep 9)".to_owned(),
            reason: "it goes on".to_owned(),
        };
        let view = RewoundView {
            checkpoint: "before".to_owned(),
            as_of_run: RunNo(2),
            run: RunNo(5),
            undone: vec![RunNo(3), RunNo(4)],
            kernels,
            files: Some(RestoredFiles { written: 2, removed: 1, ..RestoredFiles::default() }),
            left: vec![left; 22],
        };
        let text = rewound(&view);
        let head = "back at checkpoint \"before\": runs 3, 4 are taken back\n\
                    files: 2 written, 1 removed\npython: live, with all that it has loaded\n\
                    not taken back:\n- process 7 (sleep 9): it goes on\n";
        assert!(text.starts_with(head), "{text}");
        assert!(text.ends_with("\n- and 2 more"), "{text}");
    }

    #[test]
    fn nothing_is_said_of_what_is_not_there() {
        assert_eq!(checkpoints(&[]), "no checkpoints");
        let view = CheckpointView {
            name: "a".to_owned(),
            created_at: String::new(),
            as_of_run: RunNo(0),
            auto: false,
            kernels: Vec::new(),
            files: None,
            left: Vec::new(),
        };
        assert_eq!(checkpointed(&view), "checkpoint \"a\" has the state after run 0");
        assert_eq!(checkpoints(&[view]), "a: after run 0, nothing yet");
    }
}
