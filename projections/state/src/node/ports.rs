/// Host ports in use on a node: sorted, each with how often it was given out.
///
/// A port can be taken twice for a while: when an allocation that was given up as lost returns.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PortSet(Vec<(u16, u16)>);

impl PortSet {
    /// Each taken as often as it stands in the list.
    pub fn of(mut ports: Vec<u16>) -> PortSet {
        ports.sort_unstable();
        PortSet(ports.chunk_by(|a, b| a == b).map(|same| (same[0], same.len() as u16)).collect())
    }

    pub fn contains(&self, port: u16) -> bool {
        self.0.binary_search_by_key(&port, |(taken, _)| *taken).is_ok()
    }

    /// Some port is taken more than once.
    pub fn has_doubles(&self) -> bool {
        self.0.iter().any(|(_, times)| *times > 1)
    }

    pub fn iter(&self) -> impl Iterator<Item = u16> {
        self.0.iter().map(|(port, _)| *port)
    }

    pub fn take(&mut self, port: u16) {
        match self.0.binary_search_by_key(&port, |(taken, _)| *taken) {
            Ok(at) => self.0[at].1 += 1,
            Err(at) => self.0.insert(at, (port, 1)),
        }
    }

    pub fn give_back(&mut self, port: u16) {
        let at = self.0.binary_search_by_key(&port, |(taken, _)| *taken);
        let at = at.expect("a port is given back once for each time it was taken");
        self.0[at].1 -= 1;
        if self.0[at].1 == 0 {
            self.0.remove(at);
        }
    }
}
