use std::fmt;

/// One thing that is wrong with a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// Where in the document, like `Job.TaskGroups[0].Tasks[1].Driver`.
    pub path: String,
    /// What is wrong, with the names of the group and task it is wrong in.
    pub message: String,
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.path)
    }
}

/// The judgement on a job: it may be registered when there are no errors.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Validation {
    pub errors: Vec<FieldError>,
    /// The job registers, but its author may want to know.
    pub warnings: Vec<String>,
}

/// Collects findings while walking down a job.
pub(super) struct Report {
    found: Validation,
    path: Vec<String>,
    /// `group "web"`, `task "server"`: the named places on the way down.
    places: Vec<String>,
}

impl Report {
    pub(super) fn new() -> Report {
        Report { found: Validation::default(), path: vec!["Job".to_string()], places: Vec::new() }
    }

    pub(super) fn finish(self) -> Validation {
        self.found
    }

    pub(super) fn error(&mut self, field: &str, message: impl fmt::Display) {
        let path = format!("{}.{field}", self.path.join("."));
        let message = self.placed(message);
        self.found.errors.push(FieldError { path, message });
    }

    pub(super) fn warn(&mut self, message: impl fmt::Display) {
        let message = self.placed(message);
        self.found.warnings.push(message);
    }

    fn placed(&self, message: impl fmt::Display) -> String {
        let places = self.places.join(", ");
        if places.is_empty() { message.to_string() } else { format!("{places}: {message}") }
    }

    /// Walks into a part; an empty `place` adds no name to messages.
    pub(super) fn within(&mut self, field: &str, place: &str, walk: impl FnOnce(&mut Report)) {
        self.path.push(field.to_string());
        let named = !place.is_empty();
        if named {
            self.places.push(place.to_string());
        }
        walk(self);
        self.path.pop();
        if named {
            self.places.pop();
        }
    }

    pub(super) fn each<T>(&mut self, field: &str, items: &[T], check: impl Fn(&mut Report, &T)) {
        for (at, item) in items.iter().enumerate() {
            self.within(&format!("{field}[{at}]"), "", |report| check(report, item));
        }
    }

    /// An error unless `value` is empty or one of `known`.
    pub(super) fn one_of(&mut self, field: &str, value: &str, known: &[&str]) {
        if !value.is_empty() && !known.contains(&value) {
            self.error(field, format!("\"{value}\" is not one of {}", known.join(", ")));
        }
    }
}
