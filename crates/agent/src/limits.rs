//! Limits of a task.

use crate::model::Usage;
use serde::de::{Error, Unexpected};
use serde::{Deserialize, Deserializer, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = TaskLimits))]
pub struct Limits {
    /// Maximum number of requests to the model.
    pub max_steps: u32,
    /// Maximum number of tokens, input and output together.
    pub max_tokens: Option<u64>,
    pub max_time_ms: Option<u64>,
    /// In the currency of `price`.
    #[serde(deserialize_with = "any_amount")]
    #[cfg_attr(feature = "schema", schema(minimum = 0))]
    pub max_cost: Option<f64>,
    pub price: Price,
    /// Summarize the conversation when a request had more tokens than this.
    pub compact_above_tokens: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            // A task of a coding agent takes ten to thirty steps. One that runs in circles
            // should not continue all night.
            max_steps: 100,
            max_tokens: None,
            max_time_ms: None,
            max_cost: None,
            price: Price::default(),
            compact_above_tokens: None,
        }
    }
}

/// The price of a million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = TokenPrice))]
pub struct Price {
    #[serde(deserialize_with = "amount")]
    #[cfg_attr(feature = "schema", schema(minimum = 0))]
    pub input: f64,
    #[serde(deserialize_with = "amount")]
    #[cfg_attr(feature = "schema", schema(minimum = 0))]
    pub cached_input: f64,
    #[serde(deserialize_with = "amount")]
    #[cfg_attr(feature = "schema", schema(minimum = 0))]
    pub output: f64,
}

fn amount<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    let amount = f64::deserialize(deserializer)?;
    match amount >= 0.0 {
        true => Ok(amount),
        false => Err(D::Error::invalid_value(Unexpected::Float(amount), &"0 or more")),
    }
}

fn any_amount<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    match Option::<f64>::deserialize(deserializer)? {
        Some(amount) if amount < 0.0 => {
            Err(D::Error::invalid_value(Unexpected::Float(amount), &"0 or more"))
        }
        given @ (Some(_) | None) => Ok(given),
    }
}

impl Price {
    #[must_use]
    pub fn of(&self, usage: Usage) -> f64 {
        let tokens = |count: u64, price: f64| count as f64 * price / 1e6;
        tokens(usage.input_tokens.saturating_sub(usage.cached_tokens), self.input)
            + tokens(usage.cached_tokens, self.cached_input)
            + tokens(usage.output_tokens, self.output)
    }
}

/// The limit that ended a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = TaskLimit))]
pub enum Limit {
    Steps,
    Tokens,
    Time,
    Cost,
}

/// The usage of a task so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema), schema(as = TaskSpent))]
pub struct Spent {
    pub steps: u32,
    #[serde(flatten)]
    pub usage: Usage,
    pub cost: f64,
}

impl Spent {
    pub(crate) fn add(&mut self, usage: Usage, price: &Price) {
        *self = self.with(usage, price);
        self.steps += 1;
    }

    /// Adds usage that belongs to no step.
    pub(crate) fn with(self, usage: Usage, price: &Price) -> Self {
        let cost = self.cost + price.of(usage);
        Self { usage: self.usage.plus(usage), cost, ..self }
    }
}

impl Limits {
    /// Returns the limit because of which the model may not be asked again.
    pub(crate) fn reached(&self, spent: &Spent, elapsed_ms: u64) -> Option<Limit> {
        if spent.steps >= self.max_steps {
            return Some(Limit::Steps);
        }
        if self.max_time_ms.is_some_and(|most| elapsed_ms >= most) {
            return Some(Limit::Time);
        }
        self.used_up(spent)
    }

    /// Returns the limit of tokens or cost that is reached.
    pub(crate) fn used_up(&self, spent: &Spent) -> Option<Limit> {
        if self.max_tokens.is_some_and(|most| spent.usage.total() >= most) {
            return Some(Limit::Tokens);
        }
        self.max_cost.is_some_and(|most| spent.cost >= most).then_some(Limit::Cost)
    }
}
