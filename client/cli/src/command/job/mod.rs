//! Jobs and job files.

mod action;
mod allocs;
mod deployments;
mod dispatch;
mod doctor;
mod eval;
mod history;
mod init;
mod inspect;
mod periodic_force;
mod plan;
mod promote;
mod restart;
mod revert;
mod run;
mod scale;
mod start;
pub(super) mod status;
mod stop;
mod tag;
mod validate;
mod wait;

use crate::call::Command;

pub(super) const COMMANDS: &[&Command] = &[
    &action::COMMAND,
    &allocs::COMMAND,
    &deployments::COMMAND,
    &dispatch::COMMAND,
    &doctor::COMMAND,
    &eval::COMMAND,
    &history::COMMAND,
    &init::COMMAND,
    &inspect::COMMAND,
    &periodic_force::COMMAND,
    &plan::COMMAND,
    &promote::COMMAND,
    &restart::COMMAND,
    &revert::COMMAND,
    &run::COMMAND,
    &scale::SCALE,
    &scale::EVENTS,
    &start::COMMAND,
    &status::COMMAND,
    &stop::COMMAND,
    &tag::APPLY,
    &tag::UNSET,
    &validate::COMMAND,
    &wait::COMMAND,
];
