//! Reserved cores: which of a node's cores tasks may reserve, and which ones a task gets.

use std::collections::BTreeSet;

use model::document::{Node, NumaCore, Task, TaskGroup};

/// The tasks of a group that reserve cores, in the order of the group.
#[derive(Clone, Debug, Default)]
pub struct CoreRequest {
    tasks: Vec<(String, usize)>,
}

/// The cores of one task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AssignedCores {
    pub task: String,
    pub ids: Vec<u16>,
    /// Their sum, which replaces the task's own `cpu`.
    pub cpu_mhz: u32,
}

impl CoreRequest {
    pub fn of(group: &TaskGroup) -> CoreRequest {
        let asked = group.tasks.iter().map(|task| (task.name.clone(), wanted(task)));
        CoreRequest { tasks: asked.filter(|(_, cores)| *cores > 0).collect() }
    }

    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Cores in all.
    pub fn count(&self) -> usize {
        self.tasks.iter().map(|(_, cores)| cores).sum()
    }

    /// The lowest free cores, for one task after the other. `None` if there are too few: the exhausted dimension is
    /// `cores`.
    pub fn assign(&self, node: &Node, taken: &BTreeSet<u16>) -> Option<Vec<AssignedCores>> {
        let mut free = usable(node).into_iter().filter(|core| !taken.contains(&core.id));
        let assigned = self.tasks.iter().map(|(task, count)| {
            let cores: Vec<Core> = free.by_ref().take(*count).collect();
            (cores.len() == *count).then(|| AssignedCores {
                task: task.clone(),
                ids: cores.iter().map(|core| core.id).collect(),
                cpu_mhz: cores.iter().fold(0, |sum: u32, core| sum.saturating_add(core.mhz)),
            })
        });
        assigned.collect()
    }
}

/// How many cores a task reserves. If it does, its `cpu` is ignored: it counts with the MHz of its cores, and all the
/// time, also if it runs before or after the main tasks.
pub fn wanted(task: &Task) -> usize {
    let cores = task.resources.as_ref().and_then(|resources| resources.cores).unwrap_or(0);
    usize::try_from(cores).unwrap_or(0)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Core {
    pub id: u16,
    pub mhz: u32,
}

/// The cores of a node that tasks may reserve, lowest first: those that the node reserves for itself are not among
/// them.
///
/// A node without topology lists its reservable cores; each counts with an equal share of the node's MHz.
pub fn usable(node: &Node) -> Vec<Core> {
    let Some(resources) = &node.node_resources else { return Vec::new() };
    let own = node.reserved_resources.iter().flat_map(|own| &own.cpu.reserved_cpu_cores);
    let own: BTreeSet<u16> = own.copied().collect();
    let told = resources.processors.topology.as_ref().filter(|topology| !topology.cores.is_empty());
    let mut cores: Vec<Core> = match told {
        Some(topology) => {
            let enabled = topology.cores.iter().filter(|core| !core.disable);
            enabled.map(|core| Core { id: core.id, mhz: speed(core) }).collect()
        }
        None => {
            let cpu = &resources.cpu;
            let share = cpu.cpu_shares.max(0) / i64::from(cpu.total_cpu_cores.max(1));
            let mhz = u32::try_from(share).unwrap_or(u32::MAX);
            cpu.reservable_cpu_cores.iter().map(|id| Core { id: *id, mhz }).collect()
        }
    };
    cores.retain(|core| !own.contains(&core.id));
    cores.sort_by_key(|core| core.id);
    cores.dedup_by_key(|core| core.id);
    cores
}

/// The base speed, or else the maximum, or else the estimate. The node's total is the sum of the same numbers.
fn speed(core: &NumaCore) -> u32 {
    let told = [core.base_speed, core.max_speed, core.guess_speed].into_iter().find(|mhz| *mhz > 0);
    u32::try_from(told.unwrap_or(0)).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use model::document::{
        NodeProcessorResources, NodeReservedResources, NodeResources, NumaTopology, Resources, TaskLifecycle,
    };
    use model::{Given, GivenToTask, Template};
    use state::node::Amount;

    use super::*;

    fn node(cores: &[(u16, u64)]) -> Node {
        let core = |(id, base_speed): &(u16, u64)| NumaCore {
            id: *id,
            base_speed: *base_speed,
            max_speed: base_speed + 500,
            ..NumaCore::default()
        };
        let topology = NumaTopology { cores: cores.iter().map(core).collect(), ..NumaTopology::default() };
        let processors = NodeProcessorResources { topology: Some(topology) };
        let resources = NodeResources { processors, ..NodeResources::default() };
        Node { node_resources: Some(resources), ..Node::default() }
    }

    fn task(name: &str, cores: i64) -> Task {
        let resources = Resources { cores: Some(cores), cpu: Some(100), ..Resources::default() };
        Task { name: name.into(), resources: Some(resources), ..Task::default() }
    }

    fn ask(tasks: Vec<Task>) -> CoreRequest {
        CoreRequest::of(&TaskGroup { tasks: tasks.into(), ..TaskGroup::default() })
    }

    fn given(task: &str, ids: &[u16], cpu_mhz: u32) -> AssignedCores {
        AssignedCores { task: task.into(), ids: ids.to_vec(), cpu_mhz }
    }

    const FOUR: [(u16, u64); 4] = [(3, 2300), (0, 2000), (1, 2000), (2, 2200)];

    /// J20, J21.
    #[test]
    fn the_lowest_free_cores_are_given_and_their_speed_counts() {
        let node = node(&FOUR);
        let taken = BTreeSet::from([0, 1]);
        assert_eq!(ask(vec![task("t", 2)]).assign(&node, &taken), Some(vec![given("t", &[2, 3], 4500)]));
        assert_eq!(ask(vec![task("t", 3)]).assign(&node, &taken), None);
        assert_eq!(ask(vec![task("t", 4)]).assign(&node, &BTreeSet::new()).unwrap()[0].cpu_mhz, 8500);
    }

    /// J23.
    #[test]
    fn tasks_of_one_group_have_different_cores() {
        let both = ask(vec![task("a", 1), task("none", 0), task("b", 2)]);
        assert_eq!(both.count(), 3);
        let assigned = both.assign(&node(&FOUR), &BTreeSet::from([1])).unwrap();
        assert_eq!(assigned, [given("a", &[0], 2000), given("b", &[2, 3], 4500)]);
        assert_eq!(both.assign(&node(&FOUR), &BTreeSet::from([1, 2])), None);
    }

    /// J05.
    #[test]
    fn a_prestart_task_takes_its_cores_all_the_time() {
        let mut before = task("init", 2);
        before.lifecycle = Some(TaskLifecycle { hook: "prestart".into(), sidecar: false });
        let assigned = ask(vec![before]).assign(&node(&FOUR), &BTreeSet::new()).unwrap();
        let [AssignedCores { task, ids, cpu_mhz }] = &assigned[..] else { panic!("one task wants cores") };
        let to_task = GivenToTask { cores: ids.clone().into(), cpu_mhz: *cpu_mhz, ..GivenToTask::default() };
        let given = Given { tasks: [(task.clone(), to_task)].into_iter().collect(), ..Given::default() };
        // The main tasks take more than one prestart task without cores would.
        let template = Template { cpu_mhz: 500, ..Template::default() };
        assert_eq!(Amount::of(&template, &given).cpu_mhz, 4500);
    }

    #[test]
    fn a_node_keeps_cores_for_itself() {
        let mut node = node(&FOUR);
        node.node_resources.as_mut().unwrap().processors.topology.as_mut().unwrap().cores[1].disable = true;
        let mut own = NodeReservedResources::default();
        own.cpu.reserved_cpu_cores = vec![3].into();
        node.reserved_resources = Some(own);
        assert_eq!(usable(&node), [Core { id: 1, mhz: 2000 }, Core { id: 2, mhz: 2200 }]);
    }

    #[test]
    fn a_node_without_a_topology_names_the_cores_it_lets_go() {
        let mut resources = NodeResources::default();
        resources.cpu.cpu_shares = 8000;
        resources.cpu.total_cpu_cores = 4;
        resources.cpu.reservable_cpu_cores = vec![2, 1].into();
        let node = Node { node_resources: Some(resources), ..Node::default() };
        assert_eq!(usable(&node), [Core { id: 1, mhz: 2000 }, Core { id: 2, mhz: 2000 }]);
        assert!(usable(&Node::default()).is_empty());
    }
}
