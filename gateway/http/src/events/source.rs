use std::sync::Arc;

use base::Index;
use control::Control;
use feed::{Feed, Source};
use history::States;
use journal::Journal;
use state::State;
use tokio::sync::watch;

/// The stream of a running server.
pub fn feed(control: Control) -> Feed {
    Feed::new(ControlSource(control))
}

struct ControlSource(Control);

/// The states of a running server, for its history.
pub fn states(control: Control) -> impl States {
    ControlSource(control)
}

impl States for ControlSource {
    fn published(&self) -> Arc<State> {
        self.0.state()
    }

    fn origin(&self) -> Arc<State> {
        self.0.origin()
    }
}

impl Source for ControlSource {
    fn journal(&self) -> &Arc<dyn Journal> {
        self.0.journal()
    }

    fn state(&self) -> Arc<State> {
        self.0.state()
    }

    fn state_at(&self, index: Index) -> Option<Arc<State>> {
        self.0.state_at(index)
    }

    fn origin(&self) -> Arc<State> {
        self.0.origin()
    }

    fn watch(&self) -> watch::Receiver<Index> {
        self.0.watch()
    }
}
