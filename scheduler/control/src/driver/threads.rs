//! The server's threads.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use base::Rng;

use super::clock::{entropy, now};
use super::images;
use super::inbox::Fill;
use super::shared::{Leadership, Shared};
use super::workers::WorkerThread;
use crate::replica::{Effect, Fatal, Notice, Replica};

/// While a batch is on its way to the log, the next one waits this long for more commands: a batch costs about as much
/// for one as for twenty. A disk that is slower than this gets several batches at once all the same.
const GATHER: Duration = Duration::from_millis(1);

/// Commands that are worth a batch before that.
const GATHERED: usize = 64;

pub fn start(shared: &Arc<Shared>) -> Vec<JoinHandle<()>> {
    vec![
        spawn("sequencer", shared, |shared| or_abort(|| sequence(&shared))),
        spawn("timers", shared, |shared| or_abort(|| shared.run_timers())),
        spawn("images", shared, |shared| keep_images(&shared)),
    ]
}

pub fn start_worker(shared: &Arc<Shared>, worker: &Arc<WorkerThread>) -> JoinHandle<()> {
    let worker = worker.clone();
    spawn("worker", shared, move |shared| worker.run(&shared))
}

fn spawn(name: &str, shared: &Arc<Shared>, run: impl FnOnce(Arc<Shared>) + Send + 'static) -> JoinHandle<()> {
    let (builder, shared) = (std::thread::Builder::new().name(name.to_string()), shared.clone());
    builder.spawn(move || run(shared)).expect("the system gives a thread")
}

/// Runs what the server cannot go on without. If it panics, a fact was violated: going on would spread the damage,
/// and a server that only hangs would be worse than none.
fn or_abort(run: impl FnOnce()) {
    if std::panic::catch_unwind(AssertUnwindSafe(run)).is_err() {
        tracing::error!("a loop of the server panicked: the process ends");
        std::process::abort();
    }
}

/// The sequencer's thread: what the log says, then new batches.
fn sequence(shared: &Shared) {
    let mut replica = Replica::new(shared.settings.server, rules::decide);
    replica.bound_jobs(shared.settings.job_count_max);
    replica.skip_to(shared.settings.first_index);
    let mut seeds = Rng::new(entropy());
    let mut last = Instant::now();
    loop {
        let (notices, mut closed) = shared.inbox.wait(next_fill(&replica, last), |waiting| {
            (std::mem::take(&mut waiting.notices), waiting.closed)
        });
        if let Err(fatal) = take_notices(shared, &mut replica, notices) {
            halt(shared, &fatal);
            closed = true;
        }
        if closed {
            replica.follow();
            shared.reject_waiting();
            return;
        }
        while is_due(next_fill(&replica, last), shared.inbox.ready()) {
            last = Instant::now();
            let next = || shared.inbox.pop().map(|submission| shared.timings.watch(submission));
            let Some(effect) = replica.fill(now(), &mut seeds, next) else { break };
            if matches!(effect, Effect::Propose(..)) {
                shared.timings.since("nomad.nomad.plan.evaluate", last);
            }
            if !carry_out(shared, &mut replica, effect) {
                break;
            }
        }
    }
}

/// When the batch after that which was begun last may begin.
fn next_fill(replica: &Replica, last: Instant) -> Fill {
    if !replica.has_room() {
        return Fill::NotYet;
    }
    // What was held over waited for a batch already.
    if replica.is_idle() || replica.holds_over() {
        return Fill::AtOnce;
    }
    Fill::Gathered { commands: GATHERED, from: last + GATHER }
}

fn is_due(fill: Fill, ready: usize) -> bool {
    match fill {
        Fill::NotYet => false,
        Fill::AtOnce => true,
        Fill::Gathered { commands, from } => ready >= commands || (ready > 0 && Instant::now() >= from),
    }
}

fn take_notices(
    shared: &Shared,
    replica: &mut Replica,
    notices: impl IntoIterator<Item = Notice>,
) -> Result<(), Fatal> {
    for notice in notices {
        let (is_batch, began) = (matches!(notice, Notice::Committed(_)), Instant::now());
        let effects = replica.notice(notice)?;
        if is_batch {
            shared.timings.since("nomad.raft.fsm.apply", began);
        }
        for effect in effects {
            carry_out(shared, replica, effect);
        }
    }
    for effect in replica.publish_folded() {
        carry_out(shared, replica, effect);
    }
    Ok(())
}

/// `false`: the log did not take a batch. What it has to say about that comes before the next one.
fn carry_out(shared: &Shared, replica: &mut Replica, effect: Effect) -> bool {
    match effect {
        Effect::Publish(published) => {
            shared.timings.committed(published.state.index);
            shared.publish(&published);
        }
        Effect::Answer(answers) => answers.give(),
        Effect::AnswerIfLeading(answers) => answers.give_while_leading(&*shared.journal),
        Effect::Propose(term, batch) => {
            shared.timings.proposed(batch.index());
            if let Err(error) = shared.journal.propose(term, batch) {
                tracing::warn!(%error, "the log did not take a batch");
                replica.refused(&error.into());
                return false;
            }
        }
        Effect::Restored(state) => {
            shared.origin.store(state);
            shared.diverged.send_replace(None);
        }
        Effect::Lead(_, state) => shared.start_leading(&state),
        Effect::Follow(leader) => shared.follow(leader.map_or(Leadership::Unknown, Leadership::Other)),
        Effect::Diverged(why) => {
            tracing::error!(why, "this server serves nobody until it has the cluster's state");
            shared.diverged.send_replace(Some(why));
        }
    }
    true
}

/// The server cannot go on: says why, and takes no more commands.
fn halt(shared: &Shared, fatal: &Fatal) {
    let why = fatal.to_string();
    tracing::error!(why, "the server stops");
    shared.follow(Leadership::Unknown);
    shared.halted.send_replace(Some(why));
    shared.inbox.close();
}

/// Keeps an image when one is due, and a last one when the server stops.
fn keep_images(shared: &Shared) {
    let mut last = Instant::now();
    loop {
        shared.pause(images::LOOK_EVERY);
        let closed = shared.is_closed();
        if images::is_due(shared.journal.unkept_bytes(), last.elapsed(), closed) {
            if let Err(error) = shared.keep_image() {
                tracing::warn!(%error, "no image of the state is kept");
            }
            last = Instant::now();
        }
        if closed {
            return;
        }
    }
}
