//! A thread in the form that a model gets.

use crate::model::{Block, Reply};
use crate::thread::{Entry, EntryKind, Outcome, line};

/// One turn of a conversation. Turns of the caller and of the model alternate, except after
/// a task that was cut short.
#[derive(Clone, Debug, PartialEq)]
pub enum Turn {
    User(String),
    Model(Vec<Block>),
    /// The outcomes of the calls in the turn before, in their order.
    Outcomes(Vec<Outcome>),
}

/// Precedes the summary in the first turn of a summarized conversation.
const SUMMED_UP: &str = "What has happened so far, summed up:\n\n";

/// Precedes the text of the task in progress, which no summary may lose.
const UNDER_WAY: &str = "\n\nThe task that you are working on, in the user's own words:\n\n";

/// Returns everything since the last summary, without the entries that a rewind undid.
#[must_use]
pub fn turns(entries: &[Entry]) -> Vec<Turn> {
    let mut turns = Vec::new();
    // Notes for the model before its next task.
    let mut notes: Vec<String> = Vec::new();
    // Notes for its next outcome during a task.
    let mut unreported: Vec<String> = Vec::new();
    let mut open: Option<&str> = None;
    for entry in line(entries) {
        match &entry.what {
            EntryKind::Task { text, continuity, .. } => {
                open = Some(text);
                notes.append(&mut unreported);
                notes.extend(continuity.note());
                notes.push(text.clone());
                turns.push(Turn::User(std::mem::take(&mut notes).join("\n\n")));
            }
            EntryKind::Reply { reply, .. } => turns.push(Turn::Model(shown(reply))),
            EntryKind::Outcome(outcome) => {
                unreported.push(outcome.text.clone());
                let text = std::mem::take(&mut unreported).join("\n\n");
                let outcome = Outcome { text, ..outcome.clone() };
                match turns.last_mut() {
                    Some(Turn::Outcomes(outcomes)) => outcomes.push(outcome),
                    Some(Turn::User(_) | Turn::Model(_)) | None => {
                        turns.push(Turn::Outcomes(vec![outcome]));
                    }
                }
            }
            EntryKind::Continued(continuity) if open.is_some() => {
                unreported.extend(continuity.note().and_then(|note| tell(&mut turns, note)));
            }
            EntryKind::Summary { text, .. } => {
                turns.clear();
                let task = open.map(|task| format!("{UNDER_WAY}{task}")).unwrap_or_default();
                turns.push(Turn::User(format!("{SUMMED_UP}{text}{task}")));
            }
            EntryKind::SessionRewound { note, .. } => notes.push(format!(
                "(The user has taken the session back: {note}. What you did there since is undone.)"
            )),
            EntryKind::Imported { lost, .. } => notes.push(moved(lost)),
            EntryKind::Ended { .. } | EntryKind::Rewound { .. } => open = None,
            EntryKind::Created { .. }
            | EntryKind::Approval { .. }
            | EntryKind::Intent(_)
            | EntryKind::Stopping { .. }
            | EntryKind::Checkpoint(_)
            | EntryKind::Rewinding(_)
            | EntryKind::NotRewound { .. }
            | EntryKind::Activity { .. }
            | EntryKind::Moved(_)
            | EntryKind::Continued(_) => {}
        }
    }
    turns
}

/// Adds a note to the last turn. Returns it if that turn is the model's own.
fn tell(turns: &mut [Turn], note: String) -> Option<String> {
    let text = match turns.last_mut() {
        Some(Turn::User(text)) => text,
        Some(Turn::Outcomes(outcomes)) => &mut outcomes.last_mut()?.text,
        Some(Turn::Model(_)) | None => return Some(note),
    };
    text.push_str("\n\n");
    text.push_str(&note);
    None
}

/// Maximum length of a text in a shortened conversation.
const MOST_OF_A_TEXT: usize = 2000;
/// Lower bound of the bytes per token.
const BYTES_OF_A_TOKEN: u64 = 3;
/// Minimum number of turns that stay.
const LEAST_TURNS: usize = 2;

/// Shortens a conversation that is too long for the model, for a summary: cuts long texts
/// in the middle, and drops the oldest turns until it has about this many tokens.
#[must_use]
pub fn shortened(mut turns: Vec<Turn>, tokens: u64) -> Vec<Turn> {
    for turn in &mut turns {
        match turn {
            Turn::User(text) => cut(text),
            Turn::Outcomes(outcomes) => outcomes.iter_mut().for_each(|o| cut(&mut o.text)),
            // Its calls are repeated as they were.
            Turn::Model(_) => {}
        }
    }
    let most = usize::try_from(tokens.saturating_mul(BYTES_OF_A_TOKEN)).unwrap_or(usize::MAX);
    let mut size: usize = turns.iter().map(size_of).sum();
    let mut first = 0;
    while size > most && turns.len() - first > LEAST_TURNS {
        size -= size_of(&turns[first]);
        first += 1;
    }
    // Servers refuse outcomes without their calls, and a conversation that the model begins.
    while first > 0 && matches!(turns.get(first), Some(Turn::Outcomes(_))) {
        first += 1;
    }
    if first > 0 {
        let note = Turn::User("(What was said before is left out.)".to_owned());
        turns.splice(..first, [note]);
    }
    turns
}

fn size_of(turn: &Turn) -> usize {
    match turn {
        Turn::User(text) => text.len(),
        Turn::Outcomes(outcomes) => outcomes.iter().map(|outcome| outcome.text.len()).sum(),
        Turn::Model(blocks) => blocks.iter().map(size_of_block).sum(),
    }
}

fn size_of_block(block: &Block) -> usize {
    match block {
        Block::Text { text } => text.len(),
        Block::Call(call) => call.input.text().len(),
        Block::Opaque { value, .. } => value.to_string().len(),
    }
}

fn cut(text: &mut String) {
    let count = text.chars().count();
    if count > MOST_OF_A_TEXT {
        let head: String = text.chars().take(MOST_OF_A_TEXT / 2).collect();
        let tail: String = text.chars().skip(count - MOST_OF_A_TEXT / 2).collect();
        *text = format!("{head}\n[… left out …]\n{tail}");
    }
}

fn moved(lost: &[String]) -> String {
    let lost = match lost {
        [] => String::new(),
        lost => format!(" What could not be carried: {}.", lost.join(", ")),
    };
    format!("(The session was moved to another machine; paths may differ.{lost})")
}

/// Returns the blocks of a reply, never empty: servers refuse an empty turn.
fn shown(reply: &Reply) -> Vec<Block> {
    let says_something = reply.blocks.iter().any(|block| match block {
        Block::Text { text } => !text.trim().is_empty(),
        Block::Call(_) => true,
        Block::Opaque { .. } => false,
    });
    if says_something {
        return reply.blocks.clone();
    }
    vec![Block::Text { text: "(no answer)".to_owned() }]
}
