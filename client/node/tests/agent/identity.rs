//! With what a node proves to its servers who it is.

use crate::support::eventually;
use crate::support::listening::{Running, SOON, running, running_with};
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
    let running = running().await;
    *running.listening.identity.lock().unwrap() = "first".to_string();
    running.listening.await_token("first");
    // It is renewed with any answer.
    *running.listening.identity.lock().unwrap() = "second".to_string();
    running.listening.await_token("second");
    let running = running
        .restarted(|servers| {
            servers.identity.lock().unwrap().clear();
            servers.tokens.lock().unwrap().clear();
        })
        .await;
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
    running.listening.identity.lock().unwrap().clear();
    running.listening.refused.lock().unwrap().push("first".to_string());
    assert_eq!(before_registering_anew(&running, 2), "first");

    // Refused at the registration itself, after a restart.
    let secret = running.agent.local().context.node().secret_id.clone();
    // It knows that it is registered, and the next agent does too.
    running.listening.await_token(&secret);
    let running = running
        .restarted(|servers| {
            servers.refused.lock().unwrap().push(secret.clone());
            servers.tokens.lock().unwrap().clear();
        })
        .await;
    assert_eq!(before_registering_anew(&running, 1), secret);
    running.agent.shutdown().await;
}

/// The token that came before the call without one, once there were so many of these.
fn before_registering_anew(running: &Running, times: usize) -> String {
    eventually("a registration without a token", || {
        let tokens = running.listening.tokens.lock().unwrap();
        let last = tokens.iter().rposition(String::is_empty)?;
        let anonymous = tokens.iter().filter(|token| token.is_empty()).count();
        (anonymous == times).then(|| tokens[last - 1].clone())
    })
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
async fn an_introduction_that_has_expired_is_left_out() {
    let running = running_with(|settings| settings.intro_token = "expired".to_string()).await;
    running.listening.await_token("expired");
    let secret = running.agent.local().context.node().secret_id.clone();
    running.listening.await_token(&secret);
    // The node is purged, long after.
    running.listening.refused.lock().unwrap().extend([secret.clone(), "expired".to_string()]);
    assert_eq!(before_registering_anew(&running, 1), "expired");
    let tokens = running.listening.tokens.lock().unwrap().clone();
    let anonymous = tokens.iter().position(String::is_empty).unwrap();
    assert_eq!(tokens[anonymous - 2], secret);
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
