//! Machines as tasks: the driver `qemu` with an emulator that is really there.

use super::{image, skipped, slowly};
use crate::end_to_end::support::{AgentConfig, http};

#[test]
fn a_machine_is_a_task_that_serves_a_port_and_shuts_down_when_asked() {
    if skipped("a_machine_is_a_task_that_serves_a_port_and_shuts_down_when_asked") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let kernel = image::kernel();
    let initial_root = image::guest_root(&kernel, directory.path());
    let kernel = image::only(&kernel.join("boot"), "vmlinuz");
    let disk = directory.path().join("disk.img");
    std::fs::File::create(&disk).unwrap().set_len(1 << 20).unwrap();
    let allowed =
        format!("plugin \"qemu\" {{\n  config {{\n    image_paths = [\"{}\"]\n  }}\n}}\n", disk.display());
    // A guest takes its time to end where other tests have the processors.
    let patience = "client {\n  max_kill_timeout = \"2m\"\n}\n";
    let agent = AgentConfig::server_and_client(directory.path(), "one").with(&allowed).with(patience).start();
    agent.wait_for_a_ready_node();
    let job = format!(
        r#"job "guest" {{
  group "g" {{
    network {{
      port "web" {{}}
    }}
    task "machine" {{
      driver       = "qemu"
      kill_timeout = "2m"
      config {{
        image_path        = "{}"
        drive_interface   = "virtio"
        graceful_shutdown = true
        args              = ["-kernel", "{}", "-initrd", "{}", "-append", "{}"]
        port_map {{
          web = 8080
        }}
      }}
      resources {{
        cpu    = 100
        memory = 256
      }}
    }}
  }}
}}
"#,
        disk.display(),
        kernel.display(),
        initial_root.display(),
        image::KERNEL_ARGS
    );
    let file = directory.path().join("guest.nomad.hcl");
    std::fs::write(&file, job).unwrap();
    agent.run(&["job", "run", "-detach", file.to_str().unwrap()]).expect_success();
    let alloc = agent.running("guest");
    let ports =
        agent.get(&format!("/v1/allocation/{alloc}"))["AllocatedResources"]["Shared"]["Ports"].clone();
    let port = ports[0]["Value"].as_u64().unwrap() as u16;
    let said = slowly("the guest serves the port", || {
        let answer = http::get(([127, 0, 0, 1], port).into(), "/index.html").ok()?;
        (answer.status == 200).then_some(answer.body)
    });
    assert_eq!(said, "from the guest\n");
    let nodes = agent.get("/v1/nodes");
    let node = agent.get(&format!("/v1/node/{}", nodes[0]["ID"].as_str().unwrap()));
    assert_eq!(node["Attributes"]["driver.qemu"], "1");
    assert!(node["Attributes"]["driver.qemu.emulators"].as_str().unwrap().contains("x86_64"));
    // Also an agent that has not started the machine knows its monitor.
    let agent = agent.kill().start();
    agent.wait_for_a_ready_node();
    agent.run(&["job", "stop", "-detach", "guest"]).expect_success();
    let ended = slowly("the machine is gone", || {
        let alloc = agent.get(&format!("/v1/allocation/{alloc}"));
        (alloc["ClientStatus"] == "complete").then_some(alloc)
    });
    let log = agent.run(&["alloc", "logs", &alloc]).expect_success();
    assert!(log.contains("the power button was pressed"), "{log}");
    let events = ended["TaskStates"]["machine"]["Events"].as_array().unwrap();
    let end = events.iter().find(|event| event["Type"] == "Terminated").expect("it has ended");
    assert_eq!(
        (&end["Details"]["exit_code"], &end["Details"]["signal"]),
        (&"0".into(), &"0".into()),
        "{end}"
    );
}
