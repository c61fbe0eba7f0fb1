//! With what a node proves to its servers who it is.

use crate::support::eventually;
use crate::support::listening::{SOON, running, running_with};
use wire::messages::{Empty, method};

#[tokio::test(flavor = "multi_thread")]
async fn the_secret_is_shown_only_to_servers_that_know_the_node() {
    let running = running().await;
    let secret = running.agent.local().context.node().secret_id.clone();
    running.listening.await_token(&secret);
    assert_eq!(running.listening.tokens.lock().unwrap()[..2], [String::new(), secret]);
    running.agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signed_identity_takes_the_place_of_the_secret_and_outlives_the_agent() {
    let running = running_with(|_| {}).await;
    *running.listening.identity.lock().unwrap() = "first".to_string();
    running.listening.await_token("first");
    // It is renewed with any answer.
    *running.listening.identity.lock().unwrap() = "second".to_string();
    running.listening.await_token("second");
    running.listening.identity.lock().unwrap().clear();
    let running = running.restarted().await;
    running.listening.tokens.lock().unwrap().clear();
    running.listening.await_token("second");
    let secret = running.agent.local().context.node().secret_id.clone();
    assert!(!running.listening.tokens.lock().unwrap().contains(&secret));
    running.agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_whose_token_is_refused_registers_as_one_that_nobody_knows() {
    let running = running().await;
    *running.listening.identity.lock().unwrap() = "first".to_string();
    running.listening.await_token("first");
    // The node was purged, and the key that signed its identity is gone.
    *running.listening.identity.lock().unwrap() = "second".to_string();
    let before = running.servers.cluster.lock().unwrap().registered.len();
    running.listening.refused.lock().unwrap().push("first".to_string());
    running.listening.await_token("second");
    assert_eq!(running.servers.cluster.lock().unwrap().registered.len(), before + 1);
    let tokens = running.listening.tokens.lock().unwrap().clone();
    let last = tokens.iter().rposition(|token| token == "first").unwrap();
    assert_eq!(tokens[last + 1..last + 3], ["", "second"]);

    // Refused at the registration itself, after a restart.
    running.listening.refused.lock().unwrap().push("second".to_string());
    *running.listening.identity.lock().unwrap() = "third".to_string();
    let running = running.restarted().await;
    running.listening.await_token("third");
    running.agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_node_that_nobody_knows_introduces_itself() {
    let running = running_with(|settings| settings.intro_token = "configured".to_string()).await;
    let secret = running.agent.local().context.node().secret_id.clone();
    running.listening.await_token(&secret);
    assert_eq!(running.listening.tokens.lock().unwrap()[0], "configured");
    running.agent.shutdown().await;

    let running = running_with(|settings| {
        std::fs::create_dir_all(&settings.state_dir).unwrap();
        std::fs::write(settings.state_dir.join("intro_token.jwt"), "from a file\n").unwrap();
    })
    .await;
    let secret = running.agent.local().context.node().secret_id.clone();
    running.listening.await_token(&secret);
    assert_eq!(running.listening.tokens.lock().unwrap()[0], "from a file");
    running.agent.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_servers_can_have_a_new_identity_asked_for() {
    let running = running().await;
    let _: Empty =
        running.connection().await.call(method::NODE_IDENTITY_RENEW, &Empty {}, SOON).await.unwrap();
    eventually("a heartbeat that asks", || {
        running.listening.renewals.load(std::sync::atomic::Ordering::Relaxed).then_some(())
    });
    running.agent.shutdown().await;
}
