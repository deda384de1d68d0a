//! Sessions that are saved, and go on elsewhere.

mod durable;
mod save;
mod uploads;
