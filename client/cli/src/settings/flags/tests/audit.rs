use std::path::Path;

use super::read_all;

#[test]
fn the_audit_block_is_read_as_nomad_enterprise_has_it() {
    let text = r#"
data_dir = "/var/lib/sojourn"
audit {
  enabled = true
  sink "file" {
    type               = "file"
    delivery_guarantee = "best-effort"
    format             = "json"
    rotate_bytes       = 1024
    rotate_duration    = "1h"
    rotate_max_files   = 3
    mode               = "0640"
  }
  filter "metrics" {
    type       = "HTTPEvent"
    endpoints  = ["/v1/metrics"]
    stages     = ["*"]
    operations = ["GET"]
  }
}"#;
    let home = Path::new("/var/lib/sojourn");
    let settings = read_all(&[("a.hcl", text)], &["-server"]).unwrap().audit.settings(home).unwrap();
    let ::audit::Sink::File(file) = &settings.sink else { panic!("{settings:?}") };
    assert_eq!(file.path, Path::new("/var/lib/sojourn/audit/audit.log"));
    assert_eq!((file.rotate_bytes, file.keep, file.mode), (1024, 3, 0o640));
    assert!(!settings.is_enforced && settings.filters[0].endpoints == ["/v1/metrics"]);

    let json = r#"{"audit": {"enabled": true, "sink": {"x": {"type": "syslog"}}}}"#;
    let settings = read_all(&[("a.json", json)], &["-dev"]).unwrap().audit.settings(home).unwrap();
    assert_eq!(settings.sink, ::audit::Sink::Syslog("/dev/log".into()));
    assert!(settings.is_enforced && settings.filters.is_empty());
    let off = read_all(&[("a.hcl", "audit { sink \"x\" { rotate_bytes = 1 } }")], &["-dev"]).unwrap();
    assert_eq!(off.audit.settings(home), None);

    for (text, problem) in [
        ("audit { sink \"x\" { type = \"tcp\" } }", "\"type\": expected \"file\" or \"syslog\""),
        ("audit { sink \"x\" { format = \"text\" } }", "\"format\": expected \"json\""),
        ("audit { sink \"x\" { mode = \"rw\" } }", "\"mode\": expected permissions like \"0600\""),
        ("audit { sink \"x\" { path = \"log\" } }", "\"path\": expected a path that begins with /"),
        ("audit {\n sink \"x\" {}\n sink \"y\" {}\n}", "\"sink\": expected one"),
        ("audit { filter \"x\" { stages = [\"Now\"] } }", "stages: expected"),
        ("audit { filter \"x\" { type = \"RPC\" } }", "\"type\": expected \"HTTPEvent\""),
        ("audit { sinks = 1 }", "sinks"),
    ] {
        let refused = format!("{:#}", read_all(&[("a.hcl", text)], &["-dev"]).unwrap_err());
        assert!(refused.contains(problem), "{text}: {refused}");
    }
}
