use crate::call::{CLIENT_FLAGS, Call, Command, Doing, OBJECT_FLAGS, Outcome, Run};
use crate::job_file;
use crate::layout;
use crate::output::write_out;

pub(super) static COMMAND: Command = Command {
    name: "acl bootstrap",
    aliases: &[],
    arguments: "[<path>]",
    summary: "Make the first token, which may do everything.",
    details: "It works once. The argument is a file with the secret that the token is to have, a UUID, or - for\n\
              standard input; without it the cluster draws one.",
    flags: &[OBJECT_FLAGS, CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(bootstrap(call))),
};

async fn bootstrap(call: Call) -> Outcome {
    let (file, format) = (call.optional_argument()?, call.object_format()?);
    let secret = file.map(job_file::read_source).transpose()?.map(|source| source.text);
    let secret = secret.as_deref().unwrap_or_default().trim();
    let token = call.client()?.bootstrap_acl(secret).await.doing("bootstrapping")?;
    if let Some(format) = format {
        return format.print(&token);
    }
    write_out(layout::acl::token(&call.style(), &token));
    Ok(0)
}
