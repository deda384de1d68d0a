//! Sessions that are saved, and go on elsewhere.

mod durable;
mod moving;
mod save;
mod uploads;
