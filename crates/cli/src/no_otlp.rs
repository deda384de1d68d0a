//! Replaces `otlp` in a program that was built without traces.

use crate::log::ExtraLayer;
use anyhow::ensure;
use tokio::runtime::Handle;

#[derive(Debug)]
pub(crate) struct Traces;

impl Traces {
    pub(crate) fn to(endpoint: Option<&str>, _: &Handle) -> anyhow::Result<Self> {
        ensure!(
            endpoint.is_none(),
            "this sessile was built without traces, so otlp-endpoint cannot be used; build it with: cargo build --release --features otlp"
        );
        Ok(Self)
    }

    pub(crate) fn layer(&self) -> Option<ExtraLayer> {
        None
    }

    pub(crate) fn flush(&self) {}
}
