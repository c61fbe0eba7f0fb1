use base::Index;
use filter::{Filter, Schema};
use sdk::Query;
use serde_json::{Value, json};

use crate::call::{CLIENT_FLAGS, Call, Command, Doing, Failure, JSON, Outcome, Run, VERBOSE};
use crate::flags::Flag;
use crate::layout;
use crate::output::{json as printed, write_err, write_out};
use crate::past::object::{Kind, with_counts};
use crate::past::{Moment, Object};

const GOOD: Flag<String> = Flag::value("good", "MOMENT", "When the condition did not hold yet.");
const BAD: Flag<String> = Flag::value("bad", "MOMENT", "When it did. Default: now.");
const WHEN: Flag<String> = Flag::value("when", "EXPR", "The condition, in the language of -filter.");

pub(super) static COMMAND: Command = Command {
    name: "bisect",
    aliases: &[],
    arguments: "[<object>]",
    summary: "Find the fact after which a condition held for the first time.",
    details: "It reads a few moments between -good and -bad, as many as halving takes. The condition is about the object's\n\
              document (as -json prints it), to which are added Exists and Allocations, their number by client status and in\n\
              Total; without an object it is about the cluster: Nodes, Jobs, Deployments, Namespaces, NodePools,\n\
              Variables, HostVolumes and CSIVolumes by name, NodesBy and JobsBy (numbers by status), and Allocations.\n\
              Examples: bisect -good -1h -when 'NodesBy.down == 1'; bisect -good 120 -bad 480 -when 'Exists == false' job/web",
    flags: &[&[&GOOD, &BAD, &WHEN, &JSON, &VERBOSE], CLIENT_FLAGS],
    run: Run::Task(|call| Box::pin(run(call))),
};

/// What the documents are called in the filter's schema.
const DOCUMENT: &str = "Moment";

struct Search<'a> {
    call: &'a Call,
    object: Object,
    condition: Filter,
}

async fn run(call: Call) -> Outcome {
    let object = call.optional_argument()?.unwrap_or("cluster");
    let object: Object = object.parse().map_err(|why: String| call.usage(&why))?;
    let needed = |flag: &Flag<String>| {
        call.args.value(flag).ok_or_else(|| call.usage(&format!("-{} is needed", flag.name())))
    };
    let condition = Filter::parse(needed(&WHEN)?).map_err(|why| call.usage(&format!("-when: {why}")))?;
    let good = Moment::find(&call, needed(&GOOD)?).await?;
    let bad = Moment::find(&call, call.args.value(&BAD).unwrap_or("now")).await?;
    if good.index >= bad.index {
        let why = format!("-good ({}) has to be before -bad ({})", good.index, bad.index);
        return Err(call.usage(&why));
    }
    let object = object.resolved(&bad.client, &call.style()).await?;
    let search = Search { call: &call, object, condition };
    for (moment, expected, flag) in [(&good, false, &GOOD), (&bad, true, &BAD)] {
        if search.holds(moment.index).await? != expected {
            let does = if expected { "does not hold" } else { "holds" };
            return Err(anyhow::anyhow!(
                "The condition {does} at {}, which is -{}",
                moment.index,
                flag.name()
            )
            .into());
        }
    }
    let first = search.first(good.index, bad.index).await?;
    search.print(first).await
}

impl Search<'_> {
    /// The first index in `(good, bad]` at which it holds, if it then goes on to hold.
    async fn first(&self, mut good: Index, mut bad: Index) -> Result<Index, Failure> {
        while good.next() < bad {
            let middle = Index(good.0 + (bad.0 - good.0) / 2);
            let holds = self.holds(middle).await?;
            write_err(format!("{middle}: {}", if holds { "holds" } else { "does not hold" }));
            if holds { bad = middle } else { good = middle }
        }
        Ok(bad)
    }

    async fn holds(&self, index: Index) -> Result<bool, Failure> {
        let moment = Moment::at(self.call, index)?;
        let document = self.object.document(&moment.client).await?;
        let allocs = self.object.allocations(&moment.client).await?;
        let document = with_counts(&self.object, document, &allocs);
        holds(&self.condition, &document, self.object.kind)
            .map_err(|why| self.call.usage(&format!("-when: {why}")))
    }

    /// The facts of that index: where they may not be read, the index alone.
    async fn print(&self, first: Index) -> Outcome {
        let moment = Moment::at(self.call, first)?;
        let facts = match moment.client.log(Query::new().with("since", first)).await {
            Ok(page) => page.value.lines.0,
            Err(error) if error.status() == Some(403) => Vec::new(),
            Err(error) => return Err(error).doing("querying the log"),
        };
        if self.call.args.switch(&JSON) {
            write_out(printed(&json!({"Index": first.0, "Facts": facts})));
            return Ok(0);
        }
        write_out(format!("It holds since {first}\n"));
        if !facts.is_empty() {
            write_out(layout::history::log(&self.call.style(), &facts));
        }
        Ok(0)
    }
}

/// A field that an object does not have now it may have at another moment, so it counts as empty: what no moment has is
/// refused only if the type of the object is known not to have it.
fn holds(condition: &Filter, document: &Value, kind: Kind) -> Result<bool, String> {
    let nomad = match kind {
        Kind::Job => "Job",
        Kind::Node => "Node",
        Kind::Alloc => "Allocation",
        Kind::Eval => "Evaluation",
        Kind::Deployment => "Deployment",
        _ => "",
    };
    let known = Schema::nomad().fields(nomad).into_iter().flatten().map(str::to_string);
    let own = document.as_object().into_iter().flat_map(|fields| fields.keys().cloned());
    let fields: Vec<Value> = known.chain(own).map(|name| json!({"name": name, "type": "any"})).collect();
    let schema = Schema::read(&json!({DOCUMENT: {"kind": "object", "fields": fields}}));
    let schema = schema.map_err(|error| error.to_string())?;
    condition.matches(&schema, DOCUMENT, document).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn met(condition: &str, document: Value) -> Result<bool, String> {
        holds(&Filter::parse(condition).unwrap(), &document, Kind::Job)
    }

    #[test]
    fn conditions_are_about_fields_and_counts() {
        let document =
            || json!({"Exists": true, "Status": "running", "Allocations": {"Total": 3, "running": 2}});
        assert_eq!(met("Allocations.running == 2 and Status == running", document()), Ok(true));
        assert_eq!(met("Allocations.failed == 1", document()), Ok(false), "nothing failed");
        assert_eq!(met("Exists == false", json!({"Exists": false})), Ok(true));
        assert!(
            met("Stop == true", json!({"Exists": false})).is_ok(),
            "a job that is not there has no fields"
        );
        assert!(met("Nonsense == 1", document()).unwrap_err().contains("Nonsense"));
    }
}
