//! The parts of a job that concern one task.

use model::document::{Allocation, Job, Task, TaskGroup};

/// The job of an allocation, the group, and one of its tasks.
#[derive(Clone, Copy, Debug)]
pub struct TaskParts<'a> {
    pub job: &'a Job,
    pub group: &'a TaskGroup,
    pub task: &'a Task,
}

impl<'a> TaskParts<'a> {
    /// `None` when the allocation's job no longer has the task.
    pub fn find(alloc: &'a Allocation, task: &str) -> Option<TaskParts<'a>> {
        let job = alloc.job.as_ref()?;
        let group = job.task_groups.iter().find(|group| group.name.as_ref() == Some(&alloc.task_group))?;
        let task = group.tasks.iter().find(|own| own.name == task)?;
        Some(TaskParts { job, group, task })
    }
}
