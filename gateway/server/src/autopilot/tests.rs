use super::*;

/// `1 v alive 60`: number, voter / learner / outside, standing (or `unknown`), seconds.
fn view(lines: &[&str]) -> ClusterView {
    let mut view = ClusterView {
        own: 1,
        term: 3,
        last_entry: 1_000,
        leading_for: Duration::from_secs(30),
        peers: Vec::new(),
        servers: Vec::new(),
    };
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        let number: u64 = words[0].parse().unwrap();
        let address = format!("10.0.0.{number}:4647");
        if words[1] != "-" {
            let silent = words[2] == "failed" || words[2] == "unknown";
            let last_contact = Some(Duration::from_millis(if silent { 5_000 } else { 50 }));
            let (voter, matched) = (words[1] == "v", Some(1_000));
            view.peers.push(Peer { number, address: address.clone(), voter, last_contact, matched });
        }
        let standing = match words[2] {
            "alive" => Standing::Alive,
            "leaving" => Standing::Leaving,
            "left" => Standing::Left,
            "failed" => Standing::Failed,
            _ => continue,
        };
        let for_how_long = Duration::from_secs(words[3].parse().unwrap());
        view.servers.push(ServerInfo { number, name: format!("s{number}"), address, standing, for_how_long });
    }
    view
}

fn says(step: Option<Step>) -> String {
    match step {
        None => "nothing".to_string(),
        Some(Step::Add { number, .. }) => format!("add {number}"),
        Some(Step::Readdress { number, address }) => format!("readdress {number} {address}"),
        Some(Step::Remove { number, .. }) => format!("remove {number}"),
    }
}

#[test]
fn one_step_at_a_time() {
    let cases: &[(&[&str], &str)] = &[
        (&["1 v alive 60", "2 v alive 60", "3 v alive 60"], "nothing"),
        // Newcomers have to be there for a while.
        (&["1 v alive 60", "2 - alive 9"], "nothing"),
        (&["1 v alive 60", "2 - alive 10"], "add 2"),
        (&["1 v alive 60", "2 - alive 11", "3 - alive 12"], "add 3"),
        (&["1 v alive 60", "2 l alive 12"], "add 2"),
        (&["1 v alive 60", "2 - failed 60"], "nothing"),
        (&["1 v alive 60", "2 - leaving 60"], "nothing"),
        // Who left is removed, whatever it does to the majority: it asked for it.
        (&["1 v alive 60", "2 v left 0"], "remove 2"),
        (&["1 v alive 60", "2 v alive 60", "3 v left 0", "4 v failed 9"], "remove 3"),
        (&["1 v left 60", "2 v alive 60"], "nothing"),
        // The dead are removed while fewer than half are dead.
        (&["1 v alive 60", "2 v alive 60", "3 v failed 10"], "remove 3"),
        (&["1 v alive 60", "2 v failed 10"], "nothing"),
        (&["1 v alive 60", "2 v failed 10", "3 v failed 10"], "nothing"),
        (&["1 v alive 60", "2 v alive 60", "3 v failed 10", "4 v failed 10"], "nothing"),
        (&["1 v alive 60", "2 v alive 60", "3 v alive 60", "4 v failed 10", "5 v failed 10"], "remove 4"),
        (&["1 v alive 60", "2 l failed 1"], "remove 2"),
        // A voter that is away for a moment keeps its vote, and counts as dead when another could be removed.
        (&["1 v alive 60", "2 v alive 60", "3 v failed 9"], "nothing"),
        (&["1 v alive 60", "2 v alive 60", "3 v failed 9", "4 v failed 60"], "nothing"),
        (&["1 v alive 60", "2 v alive 60", "3 v alive 60", "4 v failed 9", "5 v failed 10"], "remove 5"),
        // Its successor is added first.
        (&["1 v alive 60", "2 v alive 60", "3 v failed 60", "4 - alive 5"], "nothing"),
        (&["1 v alive 60", "2 v alive 60", "3 v failed 60", "4 - alive 10"], "add 4"),
        (&["1 v alive 60", "2 v alive 60", "3 v failed 60", "4 v alive 10"], "remove 3"),
        // Gossip does not know it: perhaps not yet.
        (&["1 v alive 60", "2 v alive 60", "3 v unknown"], "nothing"),
    ];
    for (lines, expected) in cases {
        assert_eq!(says(next_step(&Autopilot::default(), &view(lines))), *expected, "{lines:?}");
    }
}

#[test]
fn a_voter_that_gossip_does_not_know_is_removed_after_a_while() {
    let mut view = view(&["1 v alive 60", "2 v alive 60", "3 v unknown"]);
    view.leading_for = UNKNOWN_GRACE;
    assert_eq!(says(next_step(&Autopilot::default(), &view)), "remove 3");
}

#[test]
fn who_answers_the_leader_is_not_dead() {
    let mut view = view(&["1 v alive 60", "2 v alive 60", "3 v failed 10"]);
    view.peers[2].last_contact = Some(RECENT_CONTACT);
    assert_eq!(says(next_step(&Autopilot::default(), &view)), "nothing");
    for silent in [Some(Duration::from_millis(2_001)), None] {
        view.peers[2].last_contact = silent;
        assert_eq!(says(next_step(&Autopilot::default(), &view)), "remove 3");
    }
}

#[test]
fn cleaning_up_can_be_switched_off_and_bounded() {
    let lines = ["1 v alive 60", "2 v alive 60", "3 v alive 60", "4 v failed 10", "5 l failed 1"];
    let off = Autopilot { cleanup_dead_servers: false, ..Autopilot::default() };
    assert_eq!(says(next_step(&off, &view(&lines))), "nothing");
    let bounded = |min_quorum| Autopilot { min_quorum, ..Autopilot::default() };
    let lines = &lines[..4];
    assert_eq!(says(next_step(&bounded(4), &view(lines))), "nothing");
    assert_eq!(says(next_step(&bounded(3), &view(lines))), "remove 4");
}

#[test]
fn a_server_that_was_set_up_anew_takes_the_place_of_its_former_self() {
    let off = Autopilot { cleanup_dead_servers: false, ..Autopilot::default() };
    let lines = ["1 v alive 60", "2 v alive 60", "3 v failed 60", "4 v alive 20"];
    let mut by_name = view(&lines);
    by_name.servers[3].name = "s3".to_string();
    assert_eq!(says(next_step(&off, &by_name)), "remove 3");
    let mut by_address = view(&lines);
    by_address.servers[3].address = "10.0.0.3:4647".to_string();
    by_address.peers[3].address = "10.0.0.3:4647".to_string();
    assert_eq!(says(next_step(&off, &by_address)), "remove 3");
    // Also if gossip does not know what was there before: it need not be waited for.
    by_address.servers.retain(|server| server.number != 3);
    assert_eq!(says(next_step(&off, &by_address)), "remove 3");
    assert_eq!(says(next_step(&off, &view(&lines))), "nothing");
}

#[test]
fn the_dead_are_never_so_many_that_the_rest_is_no_majority() {
    // Every mix of up to seven voters: following the rules to the end never removes a live one, nor goes below a
    // majority of what there was at each step.
    for voters in 1..=7_u32 {
        for dead in 0..(1_u32 << (voters - 1)) {
            let is_dead = |n: u32| n > 0 && dead & (1 << (n - 1)) != 0;
            let lines: Vec<String> = (0..voters)
                .map(|n| format!("{} v {} 60", n + 1, if is_dead(n) { "failed" } else { "alive" }))
                .collect();
            let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
            let mut view = view(&lines);
            while let Some(step) = next_step(&Autopilot::default(), &view) {
                let Step::Remove { number, .. } = step else { panic!("nobody is new") };
                assert!(is_dead(number as u32 - 1));
                let live = view.voters().filter(|peer| view.is_live(peer.number)).count();
                assert!(live > view.voters().count() / 2, "a change needs a majority before");
                view.peers.retain(|peer| peer.number != number);
                assert!(live > view.voters().count() / 2, "and after");
            }
        }
    }
}

#[test]
fn a_server_that_moved_gets_its_new_address() {
    let mut moved = view(&["1 v alive 60", "2 v alive 60"]);
    moved.servers[1].address = "10.0.9.9:4647".to_string();
    assert_eq!(says(next_step(&Autopilot::default(), &moved)), "readdress 2 10.0.9.9:4647");
    moved.servers[1].standing = Standing::Failed;
    assert_eq!(says(next_step(&Autopilot::default(), &moved)), "nothing");
}

#[test]
fn a_name_that_votes_already_is_not_added_again() {
    let mut twins = view(&["1 v alive 60", "2 v alive 60", "3 - alive 60"]);
    twins.servers[2].name = "s2".to_string();
    assert_eq!(says(next_step(&Autopilot::default(), &twins)), "nothing");
}

#[test]
fn health_is_contact_and_keeping_up() {
    let rules = Autopilot::default();
    type Change = fn(&mut ClusterView);
    let cases: &[(Change, &str)] = &[
        (|_| (), "true 1 [true, true, true]"),
        (|s| s.servers[2].standing = Standing::Failed, "false 0 [true, true, false]"),
        (|s| s.peers[2].last_contact = Some(Duration::from_millis(200)), "true 1 [true, true, true]"),
        (|s| s.peers[2].last_contact = Some(Duration::from_millis(201)), "false 0 [true, true, false]"),
        (|s| s.peers[2].last_contact = None, "false 0 [true, true, false]"),
        (|s| s.peers[2].matched = Some(750), "true 1 [true, true, true]"),
        (|s| s.peers[2].matched = Some(749), "false 0 [true, true, false]"),
        (|s| s.peers[2].matched = None, "false 0 [true, true, false]"),
        (|s| s.peers[2].voter = false, "true 0 [true, true, true]"),
        (|s| s.servers.truncate(2), "false 0 [true, true, false]"),
        (|s| s.peers[0].last_contact = None, "true 1 [true, true, true]"),
    ];
    for (number, (change, expected)) in cases.iter().enumerate() {
        let mut view = view(&["1 v alive 60", "2 v alive 60", "3 v alive 60"]);
        change(&mut view);
        let health = health(&rules, &view, &mut HealthHistory::default(), Time::ZERO);
        let each: Vec<bool> = health.servers.iter().map(|server| server.healthy).collect();
        let found = format!("{} {} {each:?}", health.healthy, health.failure_tolerance);
        assert_eq!(found, *expected, "case {number}");
    }
}

#[test]
fn stable_means_without_a_break() {
    let (rules, mut history) = (Autopilot::default(), HealthHistory::default());
    let well = view(&["1 v alive 60", "2 v alive 60"]);
    let ill = view(&["1 v alive 60", "2 v failed 60"]);
    let mut since = |view: &ClusterView, secs| {
        let health = health(&rules, view, &mut history, Time::from_secs(secs));
        health.servers.iter().map(|server| server.stable_since.0 / 1_000_000_000).collect::<Vec<_>>()
    };
    assert_eq!(since(&well, 10), [10, 10]);
    assert_eq!(since(&well, 12), [10, 10]);
    assert_eq!(since(&ill, 14), [10, 14]);
    assert_eq!(since(&ill, 16), [10, 14]);
    assert_eq!(since(&well, 18), [10, 18]);
}
