//! What a task does, step by step.

use sessile_agent::continuity::{Continuity, Status};
use sessile_agent::conversation::Turn;
use sessile_agent::ids::{TaskNo, ThreadId};
use sessile_agent::limits::{Limit, Limits, Price, Spent};
use sessile_agent::model::{Arguments, Block, Call, Failure, FailureKind, Reply, Stop, Usage};
use sessile_agent::thread::{Activity, Ending, EntryKind, FileState, Intent, Outcome, Verdict};
use sessile_agent::{
    Agent, Approval, Config, Effect, Input, Purpose, Refusal, RewindTo, Submission, Worker,
};

pub(crate) fn config() -> Config {
    Config {
        tools: vec!["runtime".into(), "edit_file".into()],
        approval: Approval::Never,
        ..Config::default()
    }
}

pub(crate) fn text(text: &str) -> Reply {
    let blocks = vec![Block::Text { text: text.into() }];
    Reply { blocks, stop: Stop::Done, usage: Usage::default(), model: String::new() }
}

pub(crate) fn calls(wanted: &[(&str, &str)]) -> Reply {
    let call = |(id, tool): &(&str, &str)| {
        let input = Arguments::parse("{\"command\": \"ls\"}");
        Block::Call(Call { id: (*id).into(), tool: (*tool).into(), input })
    };
    let blocks = wanted.iter().map(call).collect();
    Reply { blocks, stop: Stop::Calls, usage: Usage::default(), model: String::new() }
}

fn done(call: &str) -> Input {
    let outcome = Outcome { call: call.into(), text: "fine".into(), is_error: false, run: Some(1) };
    Input::Performed(outcome)
}

/// What the model is asked for last.
fn asked(effects: &[Effect]) -> Option<Purpose> {
    if let Effect::Ask(question) = effects.last()? { Some(question.purpose) } else { None }
}

/// An agent with one task.
fn begun(config: Config, limits: Limits) -> Agent {
    let (mut agent, _) = Agent::new(config, ThreadId::of([7; 12]), 0);
    let submission =
        Submission { text: "do it".into(), limits, continuity: Continuity::default(), key: None };
    let (task, effects) = agent.submit(submission, 0).unwrap();
    assert_eq!(task, TaskNo(1));
    assert!(matches!(effects[..], [Effect::Record(_), Effect::Ask(_)]), "{effects:?}");
    agent
}

fn performed(effects: &[Effect]) -> Vec<(String, String, bool)> {
    let mut found = Vec::new();
    for effect in effects {
        if let Effect::Perform { call, key, is_repeated, .. } = effect {
            found.push((call.id.clone(), key.clone(), *is_repeated));
        }
    }
    found
}

fn once(call: &str, key: String) -> Vec<(String, String, bool)> {
    vec![(call.to_owned(), key, false)]
}

fn ending(effects: &[Effect]) -> Option<&Ending> {
    effects.iter().find_map(|effect| {
        if let Effect::Ended { ending, .. } = effect { Some(ending) } else { None }
    })
}

fn outcomes(agent: &Agent) -> Vec<(&str, &str)> {
    let mut found = Vec::new();
    for entry in agent.entries() {
        if let EntryKind::Outcome(outcome) = &entry.what {
            found.push((outcome.call.as_str(), outcome.text.as_str()));
        }
    }
    found
}

#[test]
fn a_task_goes_from_calls_to_an_answer() {
    let mut agent = begun(config(), Limits::default());
    let effects = agent.step(Input::Replied(calls(&[("a", "runtime"), ("b", "edit_file")])), 1);
    let thread = ThreadId::of([7; 12]);
    assert_eq!(performed(&effects), once("a", format!("{thread}-3-0")));
    let effects = agent.step(done("a"), 2);
    assert_eq!(performed(&effects), once("b", format!("{thread}-3-1")));
    let effects = agent.step(done("b"), 3);
    assert!(matches!(effects[..], [Effect::Record(_), Effect::Ask(_)]));
    let effects = agent.step(Input::Replied(text("it is done")), 4);
    let is_cut_off = false;
    assert_eq!(ending(&effects), Some(&Ending::Done { output: "it is done".into(), is_cut_off }));
}

#[test]
fn a_task_that_is_given_again_with_its_key_is_the_same_task() {
    let (mut agent, _) = Agent::new(config(), ThreadId::of([1; 12]), 0);
    let order = |text: &str, key: &str| Submission {
        text: text.into(),
        limits: Limits::default(),
        continuity: Continuity::default(),
        key: Some(key.into()),
    };
    assert_eq!(agent.submit(order("do it", "k"), 1).unwrap().0, TaskNo(1));
    // While it is under way, and when it is over.
    assert_eq!(agent.submit(order("do it", "k"), 2).unwrap(), (TaskNo(1), Vec::new()));
    agent.step(Input::Replied(text("done")), 3);
    assert_eq!(agent.submit(order("do it", "k"), 4).unwrap(), (TaskNo(1), Vec::new()));
    assert_eq!(agent.submit(order("other", "k"), 5).unwrap_err(), Refusal::KeyReused(TaskNo(1)));
    assert_eq!(agent.submit(order("do it", "k2"), 6).unwrap().0, TaskNo(2));
}

#[test]
fn a_second_task_waits_for_the_first_one_to_end() {
    let mut agent = begun(config(), Limits::default());
    let again = |text: &str| Submission {
        text: text.into(),
        limits: Limits::default(),
        continuity: Continuity::default(),
        key: None,
    };
    assert_eq!(agent.submit(again("more"), 1).unwrap_err(), Refusal::Busy(TaskNo(1)));
    agent.step(Input::Replied(text("done")), 2);
    assert_eq!(agent.submit(again(" \n"), 3).unwrap_err(), Refusal::Empty);
    assert_eq!(agent.submit(again("more"), 3).unwrap().0, TaskNo(2));
}

#[test]
fn tools_that_do_not_exist_and_arguments_that_are_none_are_told_to_the_model() {
    let mut agent = begun(config(), Limits::default());
    let mut reply = calls(&[("a", "browser"), ("b", "runtime")]);
    if let Some(Block::Call(call)) = reply.blocks.get_mut(1) {
        call.input = Arguments::parse("{\"command\": ");
    }
    let effects = agent.step(Input::Replied(reply), 1);
    assert_eq!(asked(&effects), Some(Purpose::Step), "{effects:?}");
    assert_eq!(
        outcomes(&agent),
        [
            ("a", "there is no tool \"browser\"; the tools are: runtime, edit_file"),
            ("b", "the arguments are not a JSON object: {\"command\": "),
        ]
    );
}

#[test]
fn calls_get_names_of_their_own() {
    let mut agent = begun(config(), Limits::default());
    agent.step(Input::Replied(calls(&[("0", "browser"), ("0", "browser"), ("", "browser")])), 1);
    agent.step(Input::Replied(calls(&[("0", "browser")])), 2);
    let ids: Vec<_> = outcomes(&agent).into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids, ["0", "call_3_1", "call_3_2", "call_7_0"]);
}

#[test]
fn a_failure_that_may_pass_is_waited_for() {
    let mut agent = begun(config(), Limits::default());
    let mut wait = 500;
    let mut now = 0;
    for attempt in 1..6 {
        let failure = Failure::new(FailureKind::Unavailable, "busy");
        let effects = agent.step(Input::Failed(failure), now);
        now += wait;
        let failure = Failure::new(FailureKind::Unavailable, "busy");
        assert_eq!(effects, [Effect::WaitUntil { at_ms: now, attempt, failure }]);
        assert_eq!(agent.due_ms(), Some(now));
        assert_eq!(agent.step(Input::Due, now - 1), []);
        assert_eq!(asked(&agent.step(Input::Due, now)), Some(Purpose::Step));
        wait *= 2;
    }
    let effects = agent.step(Input::Failed(Failure::new(FailureKind::Unavailable, "busy")), now);
    assert!(matches!(ending(&effects), Some(Ending::Failed { .. })), "{effects:?}");
}

#[test]
fn a_bad_key_is_not_tried_again() {
    let mut agent = begun(config(), Limits::default());
    let failure = Failure::of_status(401, None, br#"{"error": {"message": "bad key"}}"#);
    let effects = agent.step(Input::Failed(failure), 1);
    let Some(Ending::Failed { failure }) = ending(&effects) else { panic!("{effects:?}") };
    assert_eq!(failure.fault, FailureKind::BadKey);
    assert!(failure.message.contains("bad key; check the key"), "{failure}");
}

#[test]
fn limits_end_a_task() {
    let steps = Limits { max_steps: 1, ..Limits::default() };
    let mut agent = begun(config(), steps);
    agent.step(Input::Replied(calls(&[("a", "runtime")])), 1);
    let effects = agent.step(done("a"), 2);
    assert_eq!(ending(&effects), Some(&Ending::Limit { limit: Limit::Steps }));

    let price = Price { input: 1e6, cached_input: 0.0, output: 2e6 };
    let cost = Limits { max_cost: Some(5.0), price, ..Limits::default() };
    let mut agent = begun(config(), cost);
    let mut reply = calls(&[("a", "runtime")]);
    reply.usage = Usage { input_tokens: 2, cached_tokens: 1, output_tokens: 2 };
    agent.step(Input::Replied(reply), 1);
    let effects = agent.step(done("a"), 2);
    assert_eq!(ending(&effects), Some(&Ending::Limit { limit: Limit::Cost }));
}

#[test]
fn time_that_is_over_interrupts_the_call_and_keeps_its_outcome() {
    let mut agent = begun(config(), Limits { max_time_ms: Some(100), ..Limits::default() });
    agent.step(Input::Replied(calls(&[("a", "runtime"), ("b", "runtime")])), 50);
    assert_eq!(agent.due_ms(), Some(100));
    let effects = agent.step(Input::Due, 100);
    assert!(matches!(effects[..], [Effect::Record(_), Effect::Interrupt]), "{effects:?}");
    let effects = agent.step(done("a"), 130);
    assert_eq!(ending(&effects), Some(&Ending::Limit { limit: Limit::Time }));
    let expected = [("a", "fine"), ("b", "not carried out: the task had reached a limit")];
    assert_eq!(outcomes(&agent), expected);
}

#[test]
fn a_cancelled_task_stays_so_after_a_crash() {
    let mut agent = begun(config(), Limits::default());
    agent.step(Input::Replied(calls(&[("a", "runtime"), ("b", "runtime")])), 1);
    agent.step(Input::Cancelled, 2);
    let (agent, effects) = Agent::resumed(config(), agent.entries().to_vec(), 9).unwrap();
    assert_eq!(ending(&effects), Some(&Ending::Cancelled));
    let expected = [
        ("a", "perhaps not carried out: the task was cancelled"),
        ("b", "not carried out: the task was cancelled"),
    ];
    assert_eq!(outcomes(&agent), expected);
}

#[test]
fn approval_is_asked_for_once_and_survives_a_crash() {
    let config = || Config { approval: Approval::Tools(vec!["edit_file".into()]), ..config() };
    let mut agent = begun(config(), Limits::default());
    let effects = agent.step(Input::Replied(calls(&[("a", "runtime"), ("b", "edit_file")])), 1);
    assert_eq!(performed(&effects).len(), 1);
    let effects = agent.step(done("a"), 2);
    assert!(matches!(effects.last(), Some(Effect::Approve(call)) if call.id == "b"));
    let mut other = agent.clone();
    other
        .step(Input::Decided { call: "b".into(), verdict: Verdict::Denied("not there".into()) }, 3);
    assert_eq!(outcomes(&other)[1], ("b", "the user does not allow this: not there"));

    agent.step(Input::Decided { call: "b".into(), verdict: Verdict::Allowed }, 3);
    let (_, effects) = Agent::resumed(config(), agent.entries().to_vec(), 9).unwrap();
    let key = format!("{}-3-1", agent.thread());
    assert_eq!(performed(&effects), [("b".to_owned(), key, true)]);
}

#[test]
fn a_long_conversation_is_summed_up() {
    let limits = Limits { compact_above_tokens: Some(1000), ..Limits::default() };
    let mut agent = begun(config(), limits);
    let mut reply = calls(&[("a", "runtime")]);
    reply.usage.input_tokens = 1001;
    agent.step(Input::Replied(reply), 1);
    let effects = agent.step(done("a"), 2);
    assert_eq!(asked(&effects), Some(Purpose::Summary));
    let effects = agent.step(Input::Replied(text("a was done")), 3);
    assert_eq!(asked(&effects), Some(Purpose::Step));
    let turns = agent.turns(Purpose::Step);
    let [Turn::User(said)] = &turns[..] else { panic!("{turns:?}") };
    assert!(said.contains("a was done") && said.ends_with("do it"), "{said}");
}

#[test]
fn a_program_has_a_memory_of_its_own_and_is_not_asked_for_a_summary() {
    let limits = Limits { compact_above_tokens: Some(1000), ..Limits::default() };
    let mut agent = begun(Config { worker: Worker::Program, ..config() }, limits);
    let mut reply = text("done");
    reply.usage.input_tokens = 1001;
    agent.step(Input::Replied(reply), 1);
    assert_eq!(asked(&next(&mut agent, limits)), Some(Purpose::Step));
}

fn used(tokens: u64) -> Input {
    Input::Active(Activity::Usage(Usage { input_tokens: tokens, ..Usage::default() }))
}

fn said() -> Input {
    Input::Active(Activity::Text { text: "working".into() })
}

/// How a task ended, and what it used.
fn ended(effects: &[Effect]) -> Option<(Ending, Spent)> {
    effects.iter().find_map(|effect| {
        if let Effect::Ended { ending, spent, .. } = effect {
            Some((ending.clone(), *spent))
        } else {
            None
        }
    })
}

#[test]
fn what_a_program_uses_counts_however_it_ends() {
    let config = || Config { worker: Worker::Program, ..config() };
    let price = Price { input: 1e6, ..Price::default() };
    let limits = Limits { price, ..Limits::default() };
    let failure = Failure::new(FailureKind::Crashed, "it crashed");
    for end in [Input::Failed(failure), Input::Cancelled] {
        let mut agent = begun(config(), limits);
        agent.step(used(70), 1);
        agent.step(used(30), 2);
        // Also after a crash.
        let (mut agent, _) = Agent::resumed(config(), agent.entries().to_vec(), 9).unwrap();
        let (_, spent) = ended(&agent.step(end, 10)).unwrap();
        assert_eq!((spent.usage.input_tokens, spent.cost, spent.steps), (100, 100.0, 0));
    }
    // Its answer has the sum.
    let mut agent = begun(config(), limits);
    agent.step(used(100), 1);
    let mut reply = text("done");
    reply.usage.input_tokens = 100;
    let (_, spent) = ended(&agent.step(Input::Replied(reply), 2)).unwrap();
    assert_eq!((spent.usage.input_tokens, spent.steps), (100, 1));
}

#[test]
fn what_an_answer_has_used_counts_when_it_is_given_up() {
    let price = Price { input: 1e6, ..Price::default() };
    let limits = Limits { price, max_time_ms: Some(1000), ..Limits::default() };
    let using = |tokens| Input::Using(Usage { input_tokens: tokens, ..Usage::default() });
    for end in [Input::Cancelled, Input::Due] {
        let mut agent = begun(config(), limits);
        assert_eq!(agent.step(using(70), 1), []);
        assert_eq!(agent.step(using(100), 2), [], "it tells the sum");
        let effects = agent.step(end, 1000);
        assert!(effects.contains(&Effect::Interrupt), "{effects:?}");
        let (_, spent) = ended(&effects).unwrap();
        assert_eq!((spent.usage.input_tokens, spent.cost, spent.steps), (100, 100.0, 0));
    }
    // An answer that comes has its own count, and so has the next one.
    let mut agent = begun(config(), limits);
    agent.step(using(70), 1);
    let mut reply = calls(&[("a", "runtime")]);
    reply.usage.input_tokens = 100;
    agent.step(Input::Replied(reply), 2);
    agent.step(done("a"), 3);
    let (_, spent) = ended(&agent.step(Input::Cancelled, 4)).unwrap();
    assert_eq!((spent.usage.input_tokens, spent.steps), (100, 1));
}

#[test]
fn a_program_that_goes_on_beyond_its_limit_is_stopped() {
    let config = || Config { worker: Worker::Program, ..config() };
    let limits = Limits { max_tokens: Some(100), ..Limits::default() };
    let mut agent = begun(config(), limits);
    agent.step(used(99), 1);
    assert_eq!(agent.step(said(), 2).len(), 1, "the limit is not reached");
    agent.step(used(1), 3);
    // After a crash, too, it may still end with its answer, and does not begin anew.
    let (mut resumed, effects) = Agent::resumed(config(), agent.entries().to_vec(), 9).unwrap();
    assert_eq!(asked(&effects), Some(Purpose::Step));
    let effects = resumed.step(Input::Replied(text("done")), 10);
    assert!(matches!(ending(&effects), Some(Ending::Done { .. })), "{effects:?}");
    let effects = agent.step(said(), 4);
    assert!(effects.contains(&Effect::Interrupt), "{effects:?}");
    let (how, spent) = ended(&effects).unwrap();
    assert_eq!((how, spent.usage.total()), (Ending::Limit { limit: Limit::Tokens }, 100));
}

/// The next task of an agent whose last one is over.
fn next(agent: &mut Agent, limits: Limits) -> Vec<Effect> {
    let continuity = Continuity::default();
    let submission = Submission { text: "do more".into(), limits, continuity, key: None };
    agent.submit(submission, 5).unwrap().1
}

#[test]
fn many_short_tasks_are_summed_up_as_a_long_one_is() {
    let limits = Limits { compact_above_tokens: Some(1000), ..Limits::default() };
    let mut agent = begun(config(), limits);
    let mut reply = text("done");
    reply.usage.input_tokens = 1001;
    agent.step(Input::Replied(reply), 1);
    assert_eq!(asked(&next(&mut agent, limits)), Some(Purpose::Summary));
    // Also after a crash.
    let (_, effects) = Agent::resumed(config(), agent.entries().to_vec(), 9).unwrap();
    assert_eq!(asked(&effects), Some(Purpose::Summary));
}

#[test]
fn an_empty_summary_is_asked_for_again_and_erases_nothing() {
    let limits = Limits { compact_above_tokens: Some(1000), ..Limits::default() };
    let mut agent = begun(config(), limits);
    let mut reply = text("done");
    reply.usage.input_tokens = 1001;
    agent.step(Input::Replied(reply), 1);
    next(&mut agent, limits);
    let before = agent.turns(Purpose::Step);
    let effects = agent.step(Input::Replied(calls(&[("a", "runtime")])), 6);
    assert!(matches!(effects[..], [Effect::WaitUntil { .. }]), "{effects:?}");
    assert_eq!(agent.turns(Purpose::Step), before);
    assert_eq!(asked(&agent.step(Input::Due, 10_000)), Some(Purpose::Summary));
    let effects = agent.step(Input::Replied(text("it was done")), 10_001);
    assert_eq!(asked(&effects), Some(Purpose::Step));
}

#[test]
fn a_conversation_that_is_too_long_is_summed_up_once() {
    let too_long = || Input::Failed(Failure::new(FailureKind::TooLong, "too long"));
    let limits = Limits { compact_above_tokens: Some(1000), ..Limits::default() };
    let mut agent = begun(config(), limits);
    agent.step(Input::Replied(calls(&[("a", "runtime")])), 1);
    let long =
        Outcome { call: "a".into(), text: "x".repeat(50_000), is_error: false, run: Some(1) };
    agent.step(Input::Performed(long), 2);
    assert_eq!(asked(&agent.step(too_long(), 3)), Some(Purpose::ShortSummary));
    let shown = format!("{:?}", agent.turns(Purpose::ShortSummary));
    assert!(shown.len() < 4000 && shown.contains("left out"), "{shown}");
    assert_eq!(asked(&agent.step(Input::Replied(text("a was done")), 4)), Some(Purpose::Step));
    // It does not help: the task fails, and the agent can be used again.
    let effects = agent.step(too_long(), 5);
    assert!(matches!(ending(&effects), Some(Ending::Failed { .. })), "{effects:?}");
    // Without a limit nobody has asked for summaries.
    let mut agent = begun(config(), Limits::default());
    let effects = agent.step(too_long(), 1);
    assert!(matches!(ending(&effects), Some(Ending::Failed { .. })), "{effects:?}");
}

#[test]
fn what_a_call_does_to_a_file_is_recorded_before_it_is_done() {
    let mut agent = begun(config(), Limits::default());
    agent.step(Input::Replied(calls(&[("a", "edit_file")])), 1);
    let intent = Intent { call: "a".into(), before: Some("1".into()), after: "2".into() };
    let effects = agent.step(Input::Intended(intent.clone()), 2);
    let [Effect::Record(_), Effect::Perform { intent: told, .. }] = &effects[..] else {
        panic!("{effects:?}")
    };
    assert_eq!(told.as_ref(), Some(&intent));
    let (_, effects) = Agent::resumed(config(), agent.entries().to_vec(), 9).unwrap();
    let [Effect::Perform { intent: told, is_repeated: true, .. }] = &effects[..] else {
        panic!("{effects:?}")
    };
    assert_eq!(told.as_ref(), Some(&intent));
    assert_eq!(intent.found(Some("2")), FileState::After);
    assert_eq!(intent.found(Some("1")), FileState::Before);
    assert_eq!(intent.found(None), FileState::Neither);
}

#[test]
fn a_session_brought_back_in_the_middle_of_a_task_is_told_with_the_next_outcome() {
    let mut agent = begun(config(), Limits::default());
    agent.step(Input::Replied(calls(&[("a", "runtime")])), 1);
    let lost = vec!["run 1, which was going".to_owned()];
    let restored = Continuity { status: Status::Restored, as_of_run: None, lost };
    agent.step(Input::Continued(restored), 2);
    agent.step(done("a"), 3);
    let turns = agent.turns(Purpose::Step);
    let Some(Turn::Outcomes(told)) = turns.last() else { panic!("{turns:?}") };
    assert!(told[0].text.starts_with("(Since your last step"), "{told:?}");
    assert!(told[0].text.ends_with("fine"), "{told:?}");
    // The next task does not tell it again.
    agent.step(Input::Replied(text("done")), 4);
    assert!(agent.continuity(Continuity::default()).is_live());
}

#[test]
fn secrets_are_blank_in_a_failure_also_where_it_is_cut_off() {
    let secret = "sk-test-0123456789".to_owned();
    let said = format!("your key {secret} is bad");
    let failure = Failure::new(FailureKind::BadKey, said).without(std::slice::from_ref(&secret));
    assert_eq!(failure.message, "your key [secret] is bad");
    let body = format!("{}{secret}", "x".repeat(490));
    let failure = Failure::nonsense(body.as_bytes()).without(&[secret]);
    assert!(failure.message.ends_with("x[secret]…"), "{failure}");
}

#[test]
fn time_in_which_nobody_worked_does_not_count() {
    let mut agent = begun(config(), Limits { max_time_ms: Some(1000), ..Limits::default() });
    agent.step(Input::Replied(calls(&[("a", "runtime")])), 400);
    let (agent, effects) = Agent::resumed(config(), agent.entries().to_vec(), 1_000_000).unwrap();
    assert_eq!(performed(&effects).len(), 1);
    assert_eq!(agent.due_ms(), Some(1_000_600));
}

#[test]
fn what_cannot_go_on_here_ends_with_its_calls_not_carried_out() {
    let mut agent = begun(config(), Limits::default());
    agent.step(Input::Replied(calls(&[("a", "runtime"), ("b", "runtime")])), 1);
    let moved = Failure::new(FailureKind::Moved, "elsewhere");
    let effects = agent.step(Input::Stopped(moved.clone()), 2);
    assert_eq!(ending(&effects), Some(&Ending::Failed { failure: moved }));
    let told = "not carried out: the task had failed";
    assert_eq!(outcomes(&agent), [("a", told), ("b", told)]);
}

/// The thread of an agent that another machine takes up now.
fn taken_up(agent: &Agent, worker: Worker) -> (Agent, Vec<Effect>) {
    let continuity = Continuity { status: Status::Restored, ..Continuity::default() };
    let mut entries = agent.entries().to_vec();
    let config = Config { worker, ..config() };
    entries.extend(Agent::taken_up(config.clone(), &entries, continuity, 9));
    Agent::resumed(config, entries, 9).unwrap()
}

#[test]
fn a_call_that_another_machine_may_have_carried_out_is_told_as_unknown() {
    let mut agent = begun(config(), Limits::default());
    let wanted = [("a", "nothing"), ("b", "runtime"), ("c", "runtime")];
    agent.step(Input::Replied(calls(&wanted)), 1);
    let (there, effects) = taken_up(&agent, Worker::Model);
    let told = outcomes(&there);
    assert_eq!((told.len(), told[1].0), (2, "b"), "{told:?}");
    assert!(told[1].1.contains("is not known"), "{told:?}");
    // The one after it was not begun.
    assert_eq!(performed(&effects)[0].0, "c");
}

#[test]
fn a_file_is_looked_at_before_another_machine_changes_it() {
    let mut agent = begun(config(), Limits::default());
    agent.step(Input::Replied(calls(&[("a", "edit_file")])), 1);
    let intent = Intent { call: "a".into(), before: None, after: "hash".into() };
    agent.step(Input::Intended(intent.clone()), 2);
    let (there, effects) = taken_up(&agent, Worker::Model);
    assert_eq!(outcomes(&there), []);
    let Some(Effect::Perform { intent: Some(found), is_repeated: true, .. }) = effects.last()
    else {
        panic!("{effects:?}");
    };
    assert_eq!(*found, intent);
}

#[test]
fn a_program_that_was_at_work_on_another_machine_is_not_started_again() {
    let agent = begun(config(), Limits::default());
    let (_, effects) = taken_up(&agent, Worker::Model);
    assert_eq!(asked(&effects), Some(Purpose::Step));
    let (_, effects) = taken_up(&agent, Worker::Program);
    let Some(Ending::Failed { failure }) = ending(&effects) else { panic!("{effects:?}") };
    assert_eq!(failure.fault, FailureKind::Crashed);
    assert_eq!(asked(&effects), None);
}

#[test]
fn answers_that_do_not_count_have_been_used_all_the_same() {
    let price = Price { input: 10.0, cached_input: 0.0, output: 0.0 };
    let limits = Limits { max_tokens: Some(250), price, ..Limits::default() };
    let used = Usage { input_tokens: 100, cached_tokens: 0, output_tokens: 0 };
    let broken = || Input::Failed(Failure::broken().having_used(used));
    let mut agent = begun(config(), limits);
    agent.step(broken(), 1);
    agent.step(Input::Due, 1_000);
    // The next server knows of it.
    let (mut agent, effects) = Agent::resumed(config(), agent.entries().to_vec(), 2_000).unwrap();
    assert_eq!(asked(&effects), Some(Purpose::Step));
    let mut done = agent.clone();
    let (_, spent) = ended(&done.step(Input::Replied(text("well")), 2_100)).unwrap();
    assert_eq!((spent.usage, spent.steps), (used, 1));
    assert!((spent.cost - 0.001).abs() < 1e-9, "{spent:?}");
    // It is not asked for ever.
    agent.step(broken(), 2_100);
    agent.step(Input::Due, 10_000);
    let (ending, spent) = ended(&agent.step(broken(), 10_100)).unwrap();
    assert_eq!(ending, Ending::Limit { limit: Limit::Tokens });
    assert_eq!((spent.usage.input_tokens, spent.steps), (300, 0));
}

#[test]
fn a_step_that_is_not_there_says_whether_any_was() {
    let mut agent = begun(config(), Limits::default());
    agent.step(Input::Cancelled, 1);
    let refused = |agent: &mut Agent| agent.rewind(RewindTo::Step(99), 2).unwrap_err().to_string();
    assert!(refused(&mut agent).contains("it has made none yet"));
    next(&mut agent, Limits::default());
    agent.step(Input::Replied(text("well")), 3);
    assert!(refused(&mut agent).contains("its steps are 1 to 1"));
    agent.rewind(RewindTo::LastTask, 4).unwrap();
    assert!(refused(&mut agent).contains("none is left"));
}

#[test]
fn tokens_of_an_answer_that_does_not_count_are_nothing_that_a_rewind_would_take_back() {
    let mut agent = begun(config(), Limits::default());
    let used = Usage { input_tokens: 100, ..Usage::default() };
    agent.step(Input::Failed(Failure::broken().having_used(used)), 1);
    agent.step(Input::Due, 1_000);
    agent.step(Input::Replied(text("well")), 1_100);
    let effects = agent.rewind(RewindTo::LastTask, 2_000).unwrap();
    assert!(matches!(effects[..], [Effect::Record(_), Effect::Record(_)]), "{effects:?}");
}

#[test]
fn what_a_program_did_is_not_taken_back_without_a_checkpoint() {
    let program = Config { worker: Worker::Program, ..config() };
    let mut agent = begun(program, Limits::default());
    agent.step(Input::Replied(text("it is all done")), 1);
    let refused = agent.rewind(RewindTo::LastTask, 2).unwrap_err();
    assert!(matches!(refused, Refusal::NoCheckpoint { step: 1, .. }), "{refused}");
}
