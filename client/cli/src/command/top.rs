use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Outcome, Run};
use crate::flags::Flag;
use crate::output::write_out;
use crate::top::{self, Reader, Request, State, View};

const ONCE: Flag<bool> =
    Flag::switch("once", "Print one screen as plain text, with all rows and columns, and exit.");
const VIEW: Flag<String> = Flag::value(
    "view",
    "LIST",
    "The list to begin with: nodes, jobs, allocs, evals or events. Default: jobs.",
);

pub(super) static COMMAND: Command = Command {
    name: "top",
    aliases: &[],
    arguments: "",
    summary: "Show the cluster on one screen, live, and as it was.",
    details: "Servers, nodes and what is allocated of them, and below a list of nodes, jobs, allocations, evaluations or\n\
              events. Keys: ? shows them all. The left and right arrow keys go back and forth in the log, p pauses, l goes\n\
              back to the present; with -as-of it begins in the past. All namespaces are shown unless -namespace is given.",
    flags: &[&[&ONCE, &VIEW], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(run(call))),
};

async fn run(call: Call) -> Outcome {
    call.no_arguments()?;
    if !call.fork().is_empty() {
        return Err(
            call.usage("-fork cannot be used here: job status -fork and the like show what is on a fork")
        );
    }
    let view = match call.args.value(&VIEW) {
        None => View::Jobs,
        Some(word) => match View::ALL.into_iter().find(|view| view.word() == word) {
            Some(view) => view,
            None => {
                let known = View::ALL.map(View::word).join(", ");
                return Err(
                    call.usage(&format!("invalid value \"{word}\" for flag -view: expected one of {known}"))
                );
            }
        },
    };
    let once = call.args.switch(&ONCE);
    if !once && !top::is_possible() {
        return Err(
            call.usage("The input or the output is no terminal: -once prints one screen as plain text")
        );
    }
    let request = Request::list(view, call.as_of());
    let style = call.style();
    let reader = Reader::new(call)?;
    let mut state = State::new(request.clone());
    if once {
        state.take(reader.read(request).await.doing("reading the cluster")?);
        write_out(top::plain(&state, &style));
        return Ok(0);
    }
    top::run(state, style, &reader).await?;
    Ok(0)
}
