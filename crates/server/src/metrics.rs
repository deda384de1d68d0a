//! The server's metrics.

use crate::keepers::lock;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use sessile_protocol::{Completed, KernelFate, RunNo, SessionId};
use std::collections::HashSet;
use std::sync::Mutex;
use std::time::Duration;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RunLabels {
    pub(crate) language: &'static str,
    pub(crate) outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct StatusLabels {
    pub(crate) status: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct CodeLabels {
    pub(crate) code: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StreamLabels {
    pub(crate) stream: &'static str,
}

#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    pub(crate) sessions: Family<StatusLabels, Gauge>,
    runs: Family<RunLabels, Counter>,
    run_seconds: Histogram,
    queue_seconds: Histogram,
    output_bytes: Family<StreamLabels, Counter>,
    kernel_restarts: Family<RunLabels, Counter>,
    pub(crate) keepers_adopted: Counter,
    pub(crate) keepers_lost: Counter,
    pub(crate) refusals: Family<CodeLabels, Counter>,
    pub(crate) streams: Gauge,
    /// Runs that were begun here and are not yet counted.
    going: Mutex<HashSet<(SessionId, RunNo)>>,
}

/// Runs whose end no client asks for stay in the set. Once it has this many, further runs
/// are not counted at all.
const GOING: usize = 10_000;

/// Buckets from 100 µs, which is a no-op in a warm shell, to three minutes.
fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.0001, 3.0, 14))
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix("sessile"),
            sessions: Family::default(),
            runs: Family::default(),
            run_seconds: seconds(),
            queue_seconds: seconds(),
            output_bytes: Family::default(),
            kernel_restarts: Family::default(),
            keepers_adopted: Counter::default(),
            keepers_lost: Counter::default(),
            refusals: Family::default(),
            streams: Gauge::default(),
            going: Mutex::default(),
        };
        let registry = &mut metrics.registry;
        registry.register("sessions", "Sessions by status", metrics.sessions.clone());
        registry.register("runs", "Finished runs by language and outcome", metrics.runs.clone());
        registry.register_with_unit(
            "run_duration",
            "Time from a run's start to its end",
            Unit::Seconds,
            metrics.run_seconds.clone(),
        );
        registry.register_with_unit(
            "run_queue",
            "Time that a run's caller waited besides its duration",
            Unit::Seconds,
            metrics.queue_seconds.clone(),
        );
        registry.register_with_unit(
            "output",
            "What finished runs have written",
            Unit::Bytes,
            metrics.output_bytes.clone(),
        );
        registry.register(
            "kernel_restarts",
            "Runs that found or left a new kernel",
            metrics.kernel_restarts.clone(),
        );
        registry.register(
            "keepers_adopted",
            "Live keepers found when the server started",
            metrics.keepers_adopted.clone(),
        );
        registry.register(
            "keepers_lost",
            "Sessions that had to be given a new keeper",
            metrics.keepers_lost.clone(),
        );
        registry.register("refusals", "Refused requests by error code", metrics.refusals.clone());
        registry.register("streams", "Event streams that are open", metrics.streams.clone());
        metrics
    }

    /// Returns the metrics in the text format of Prometheus.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = prometheus_client::encoding::text::encode(&mut text, &self.registry);
        text
    }

    /// Notes a run whose end a client will ask for later.
    pub(crate) fn began(&self, session: &SessionId, run: RunNo) {
        let mut going = lock(&self.going);
        if going.len() < GOING {
            going.insert((session.clone(), run));
        }
    }

    /// Counts a run when a client first sees its end.
    pub(crate) fn ended(&self, session: &SessionId, done: &Completed) {
        if lock(&self.going).remove(&(session.clone(), done.run)) {
            self.observe(done, Duration::from_micros(done.duration_us));
        }
    }

    /// Counts a run that took this long.
    pub(crate) fn observe(&self, done: &Completed, elapsed: Duration) {
        let language = done.language.as_str();
        let outcome = match (done.timed_out, done.interrupted, done.exit_code) {
            (true, _, _) => "timed_out",
            (_, true, _) => "interrupted",
            (_, _, 0) => "succeeded",
            _ => "failed",
        };
        self.runs.get_or_create(&RunLabels { language, outcome }).inc();
        let duration = Duration::from_micros(done.duration_us);
        self.run_seconds.observe(duration.as_secs_f64());
        self.queue_seconds.observe(elapsed.saturating_sub(duration).as_secs_f64());
        for (stream, view) in [("stdout", &done.stdout), ("stderr", &done.stderr)] {
            self.output_bytes.get_or_create(&StreamLabels { stream }).inc_by(view.total);
        }
        let outcome = match done.kernel {
            KernelFate::Kept => return,
            KernelFate::Restarted => "restarted",
            KernelFate::Restored { .. } => "restored",
            KernelFate::Fresh => "fresh",
        };
        self.kernel_restarts.get_or_create(&RunLabels { language, outcome }).inc();
    }
}
