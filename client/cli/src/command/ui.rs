use sdk::Client;

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, Outcome, Run};
use crate::flags::Flag;
use crate::hint;
use crate::output::write_out;

const AUTHENTICATE: Flag<bool> = Flag::switch("authenticate", "Log in with a one-time token.");
const SHOW_URL: Flag<bool> = Flag::switch("show-url", "Only print the address.");

pub(super) static COMMAND: Command = Command {
    name: "ui",
    aliases: &[],
    arguments: "[<identifier>]",
    summary: "Open the web UI, at a job, allocation or node if one is given.",
    details: "",
    flags: &[&[&AUTHENTICATE, &SHOW_URL], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(run(call))),
};

async fn run(call: Call) -> Outcome {
    let client = call.client()?;
    let mut url = format!("{}/ui/", call.web_address());
    if let Some(given) = call.optional_argument()? {
        url.push_str(&page(&client, given).await?);
    }
    if !call.namespace().is_empty() {
        url.push_str(&format!("?namespace={}", hint::segment(call.namespace())));
    }
    let mut with = "";
    if call.args.switch(&AUTHENTICATE) {
        let secret = client.one_time_token().await.doing("getting a one-time token")?;
        url.push_str(&format!("{}ott={secret}", if url.contains('?') { '&' } else { '?' }));
        with = " with one-time token";
    }
    if call.args.switch(&SHOW_URL) {
        write_out(format!("URL for web UI: {url}\n"));
        return Ok(0);
    }
    // The token is a secret: the address is shown without it.
    let shown = url.split(['?', '&']).next().unwrap_or_default();
    write_out(format!("Opening URL \"{shown}\"{with}\n"));
    let opened = hint::open(&url);
    opened.map_err(|error| anyhow::anyhow!("Error opening URL: {error}: -show-url prints it"))?;
    Ok(0)
}

/// The page of the object with this name or id.
async fn page(client: &Client, given: &str) -> Result<String, Failure> {
    let request = api::SearchRequest { prefix: given.to_string(), context: "all".to_string() };
    let found = client.search(&request).await;
    let found = found.doing(&format!("querying search with id: \"{given}\""))?.matches;
    let places =
        [("jobs", "jobs"), ("allocs", "allocations"), ("nodes", "clients"), ("evals", "evaluations")];
    let mut pages = Vec::new();
    for (context, place) in places {
        for id in found.get(context).into_iter().flatten() {
            pages.push((id, format!("{place}/{}", hint::segment(id))));
        }
    }
    let exact = pages.iter().position(|(id, _)| *id == given);
    match (exact, pages.len()) {
        (None, 0) => {
            Err(anyhow::anyhow!("No job, allocation, node or evaluation begins with \"{given}\"").into())
        }
        (None, 2..) => {
            let ids: Vec<_> = pages.iter().map(|(id, _)| id.as_str()).collect();
            Err(anyhow::anyhow!("\"{given}\" means more than one thing: {}", ids.join(", ")).into())
        }
        (at, _) => Ok(pages.swap_remove(at.unwrap_or(0)).1),
    }
}
