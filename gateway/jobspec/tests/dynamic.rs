//! `dynamic` blocks.

use jobspec::{NoFiles, Source, Variables, parse};
use model::document::Job;
use serde_json::json;

const FARM: &str = r#"
variable "teams" {
  default = { blue = [80, 81], red = [90] }
}

job "farm" {
  dynamic "group" {
    for_each = var.teams
    iterator = team
    labels   = ["team-${team.key}"]
    content {
      count = length(team.value)
      network {
        dynamic "port" {
          for_each = team.value
          labels   = ["p${port.key}"]
          content {
            static = port.value
          }
        }
      }
      dynamic "update" {
        for_each = team.key == "red" ? [{}] : []
        content {
          canary = 1
        }
      }
      task "run" {
        driver = "docker"
        config {
          image = "farm"
          dynamic "mount" {
            for_each = team.value
            content {
              source = "/srv/${team.key}/${mount.value}"
            }
          }
        }
      }
    }
  }
}
"#;

fn parsed(text: &str) -> Result<Job, String> {
    let parsed = parse(&Source::new("web.hcl", text), &Variables::default(), &NoFiles);
    parsed.map(|parsed| parsed.job).map_err(|wrong| wrong.plain())
}

#[test]
fn dynamic_blocks_become_one_block_for_each_element() {
    let job = parsed(FARM).unwrap();
    let names: Vec<&str> = job.task_groups.iter().filter_map(|group| group.name.as_deref()).collect();
    assert_eq!(names, ["team-blue", "team-red"]);
    let json = serde_json::to_value(&job).unwrap();
    let port = |group: usize, port: usize, field: &str| {
        json["TaskGroups"][group]["Networks"][0]["ReservedPorts"][port][field].clone()
    };
    assert_eq!([port(0, 0, "Value"), port(0, 1, "Value"), port(1, 0, "Value")], [80, 81, 90]);
    assert_eq!(port(0, 1, "Label"), "p1");
    assert_eq!(json["TaskGroups"][0]["Count"], 2);
    assert!(json["TaskGroups"][0]["Update"].is_null());
    assert_eq!(json["TaskGroups"][1]["Update"]["Canary"], 1);
    let config = &json["TaskGroups"][0]["Tasks"][0]["Config"];
    assert_eq!(config["mount"], json!([{ "source": "/srv/blue/80" }, { "source": "/srv/blue/81" }]));
}

#[test]
fn a_name_that_no_iterator_bears_any_more_is_left_to_the_node() {
    let job = parsed(
        "job \"a\" {\n dynamic \"group\" {\n for_each = [1]\n labels = [\"g\"]\n content {}\n }\n \
         meta {\n x = group.value\n }\n}\n",
    );
    assert_eq!(job.unwrap().meta["x"], "${group.value}");
}

#[test]
fn dynamic_blocks_count_as_written_ones() {
    let twice = "job \"a\" {\n dynamic \"update\" {\n for_each = [1, 2]\n content {}\n }\n}\n";
    assert!(parsed(twice).unwrap_err().contains("a second update block"));
    let endless = "job \"a\" {\n dynamic \"group\" {\n for_each = flatten([for i in range(200) : range(1000)])\n \
                   labels = [\"g${group.value}\"]\n content {}\n }\n}\n";
    assert!(parsed(endless).unwrap_err().contains("more than the allowed work"));
}
