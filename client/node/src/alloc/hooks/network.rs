//! The network of the group. This agent has that of the host only.

use super::{AllocContext, AllocHook, group_of};
use crate::hook::{HookError, HookFuture, HookState, ready};

#[derive(Debug)]
pub struct Network;

impl AllocHook for Network {
    fn name(&self) -> &'static str {
        "network"
    }

    fn prerun<'a>(&'a self, alloc: &'a AllocContext, _: &'a mut HookState) -> HookFuture<'a> {
        let newest = alloc.alloc();
        let network = group_of(&newest).and_then(|group| group.networks.first());
        ready(match network.map_or("", |network| network.mode.as_str()) {
            "" | "host" => Ok(()),
            mode => {
                Err(HookError::fatal(self.name(), format!("this node has no networking mode \"{mode}\"")))
            }
        })
    }
}
