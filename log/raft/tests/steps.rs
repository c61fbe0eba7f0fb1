//! Without threads and in virtual time: the same seed gives the same run, and no run breaks what the log promises.

use std::process::Command;
use std::time::Duration;

use crate::support::simulation::World;
use crate::support::timings;
use journal::Freshness;
use tokio::time::{Instant, sleep};

const STEPS: u64 = 150;

fn virtually<T>(what: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_time().start_paused(true).build().unwrap().block_on(what)
}

fn run(seed: u64) -> Vec<String> {
    virtually(async {
        let mut world = World::new(seed).await;
        for _ in 0..STEPS {
            world.act().await;
        }
        world.settle().await;
        std::mem::take(&mut world.trace.lock().lines)
    })
}

#[test]
fn no_seed_breaks_a_promise() {
    let traces: Vec<Vec<String>> = (0..10).map(run).collect();
    for (what, least) in
        [("committed", 1_000), ("leading", 20), ("crash", 20), ("restored", 20), ("following None", 5)]
    {
        let count = traces.iter().flatten().filter(|line| line.contains(what)).count();
        assert!(count >= least, "{count} times {what}");
    }
}

/// A server that was away is sent an image, and its power goes at each operation of its disk until it has caught up.
#[test]
fn an_image_that_is_being_put_in_place_survives_a_crash() {
    virtually(async {
        let mut world = World::new(1).await;
        world.settle().await;
        let (mut crashes, mut nth) = (0, 0);
        loop {
            world.crash(3);
            world.fill(60).await;
            world.keep_all();
            let before = world.disks[&3].operations();
            world.disks[&3].cut_power_at(before + nth);
            let crashes_before = world.crashes();
            world.start(3).await;
            sleep(Duration::from_secs(3)).await;
            world.bury();
            let died = world.crashes() > crashes_before;
            world.settle().await;
            if !died {
                break;
            }
            (crashes, nth) = (crashes + 1, nth + 1);
        }
        let trace = world.trace.lock();
        let sent = trace.lines.iter().filter(|line| line.contains(" 3 restored")).count();
        assert!(crashes > 10 && sent > crashes, "{crashes} crashes, {sent} images");
    });
}

/// A follower that is started anew has forgotten the leader of a moment ago. If it helped to elect another at once, the
/// first leader would go on to read by its lease while the second one writes.
#[test]
fn a_follower_that_restarts_does_not_betray_a_lease() {
    let mut elected = 0;
    for seed in 0..8 {
        virtually(async {
            let mut world = World::new(seed).await;
            world.settle().await;
            let first = world.leader().expect("somebody leads");
            let others: Vec<u64> = [1, 2, 3].into_iter().filter(|node| *node != first).collect();
            let (faithful, cut_off) = (others[0], others[1]);
            world.network.part(&[cut_off]);
            sleep(Duration::from_millis(300 + 50 * seed)).await;
            world.network.heal();
            world.network.part(&[first]);
            world.crash(faithful);
            world.start(faithful).await;
            for _ in 0..600 {
                sleep(Duration::from_millis(2)).await;
                let second = others.iter().any(|node| world.takes(*node));
                let sure = second && world.reads(first, Freshness::Lease).await.is_ok();
                assert!(!sure, "seed {seed}: two leaders, and the first one reads");
                elected += u64::from(second);
            }
        });
    }
    assert!(elected > 0);
}

/// Clocks are equally fast in no cluster. A leader with a slow one believes in its lease for longer than its followers, with
/// fast ones, do.
#[test]
fn a_lease_is_over_before_followers_with_fast_clocks_elect_another() {
    const DRIFT: i32 = 10;
    let mut elected = 0;
    for seed in 0..40 {
        virtually(async {
            let mut world = World::new(seed).await;
            world.settle().await;
            world.fast = [(1, -DRIFT), (2, DRIFT), (3, DRIFT)].into();
            for node in [1, 2, 3] {
                world.crash(node);
                world.start(node).await;
                world.settle().await;
            }
            while let Some(leader) = world.leader().filter(|leader| *leader != 1) {
                // It may be refused for as long as the other one is not up to date.
                world.servers[&leader].transfer(Some(1)).await.unwrap_or(0);
                sleep(Duration::from_millis(500)).await;
            }
            // One has asked for votes for a while when the other does not hear from the leader any more.
            world.network.part(&[3]);
            sleep(Duration::from_millis(2_000 + 37 * seed)).await;
            if !world.takes(1) {
                return;
            }
            world.network.heal();
            world.network.part(&[1]);
            for _ in 0..1_200 {
                sleep(Duration::from_millis(1)).await;
                let second = [2, 3].iter().any(|node| world.takes(*node));
                let sure = second && world.reads(1, Freshness::Lease).await.is_ok();
                assert!(!sure, "seed {seed}: two leaders, and the first one reads");
                elected += u64::from(second);
            }
        });
    }
    assert!(elected > 1_000, "{elected}");
}

/// Nobody else can hold a lease that it could betray.
#[test]
fn a_lone_server_that_restarts_leads_at_once() {
    virtually(async {
        let mut world = World::of(1, &[1]).await;
        for _ in 0..3 {
            let begun = Instant::now();
            while !world.takes(1) {
                sleep(Duration::from_millis(1)).await;
            }
            let waited = begun.elapsed();
            assert!(waited < timings().election.start / 4, "it waited for {waited:?}");
            world.crash(1);
            world.start(1).await;
        }
    });
}

/// As many as `SEEDS` says, as in `SEEDS=100..200`.
#[test]
#[ignore = "takes long"]
fn many_seeds() {
    let range = std::env::var("SEEDS").unwrap_or_else(|_| "0..1000".into());
    let (first, end) = range.split_once("..").expect("a range as in 100..200");
    for seed in first.parse::<u64>().unwrap()..end.parse().unwrap() {
        println!("seed {seed}");
        run(seed);
    }
}

#[test]
fn a_seed_names_its_run() {
    let first = run(3);
    let again = run(3);
    for (nth, (first, again)) in first.iter().zip(&again).enumerate() {
        assert_eq!(first, again, "line {nth} of the second run");
    }
    assert_eq!(first.len(), again.len());
    assert_ne!(first, run(4));
}

/// Hash keys, addresses and the like are others in another process.
#[test]
fn a_seed_names_its_run_in_every_process() {
    const CHILD: &str = "RUN_SEED";
    let trace = || run(5).join("\n");
    if std::env::var(CHILD).is_ok() {
        println!("<{}>", trace());
        return;
    }
    let itself = std::env::current_exe().unwrap();
    let mut child = Command::new(itself);
    let child = child
        .args(["--exact", "steps::a_seed_names_its_run_in_every_process", "--nocapture"])
        .env(CHILD, "1");
    let said = String::from_utf8(child.output().unwrap().stdout).unwrap();
    assert!(said.contains(&format!("<{}>", trace())), "{said}");
}
