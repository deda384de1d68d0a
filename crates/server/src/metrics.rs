//! What the server counts.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct RunLabels {
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
pub(crate) struct StreamLabels {
    pub(crate) stream: &'static str,
}

#[derive(Debug)]
pub(crate) struct Metrics {
    registry: Registry,
    pub(crate) sessions: Family<StatusLabels, Gauge>,
    pub(crate) runs: Family<RunLabels, Counter>,
    pub(crate) run_seconds: Histogram,
    pub(crate) queue_seconds: Histogram,
    pub(crate) output_bytes: Family<StreamLabels, Counter>,
    pub(crate) kernel_restarts: Family<RunLabels, Counter>,
    pub(crate) keepers_adopted: Counter,
    pub(crate) keepers_lost: Counter,
    pub(crate) refusals: Family<CodeLabels, Counter>,
    pub(crate) streams: Gauge,
}

/// From 100 µs, which is a no-op in a warm shell, to three minutes.
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

    /// In the text format of Prometheus.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = prometheus_client::encoding::text::encode(&mut text, &self.registry);
        text
    }
}
