//! What a run does, prints and leaves, and what can be done with it meanwhile.

mod concurrency;
mod ended_jobs;
mod exactness;
mod following;
mod interaction;
mod interrupts;
mod jobs;
mod live;
mod output;
mod queue;
mod silence;
mod socket;
mod terminals;
