use std::os::unix::fs::PermissionsExt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::{mpsc, watch};
use wire::messages::{
    AllocIdentitiesResponse, CsiVolumeClaimRequest, CsiVolumeClaimResponse, CsiVolumeExpandedRequest,
    CsiVolumeUnpublishRequest, SignedWorkloadIdentity, WorkloadIdentityRejection,
};

use super::*;
use crate::remote::ServerQueries;
use crate::server::ServerError;
use crate::testing;

/// Signs whatever is asked for, with tokens that say how often that was.
#[derive(Debug, Default)]
struct Signers {
    asked: Mutex<Vec<String>>,
    lives: i64,
    rejects: bool,
}

impl ServerQueries for Signers {
    fn claim_volume(
        &self,
        _: CsiVolumeClaimRequest,
    ) -> BoxFuture<'_, Result<CsiVolumeClaimResponse, ServerError>> {
        unreachable!("no task has a volume")
    }

    fn volume_expanded(&self, _: CsiVolumeExpandedRequest) -> BoxFuture<'_, Result<(), ServerError>> {
        unreachable!("no task has a volume")
    }

    fn unpublish_volume(&self, _: CsiVolumeUnpublishRequest) -> BoxFuture<'_, Result<(), ServerError>> {
        unreachable!("no task has a volume")
    }

    fn end_of<'a>(&'a self, id: &'a str) -> BoxFuture<'a, ()> {
        panic!("{id} is waited for")
    }

    fn node_of<'a>(&'a self, alloc: &'a str) -> BoxFuture<'a, Result<model::document::Node, String>> {
        panic!("the node of {alloc} is looked for")
    }

    fn drain<'a>(
        &'a self,
        node_id: &'a str,
        _: crate::drain::ShutdownDrain,
    ) -> BoxFuture<'a, Result<(), ServerError>> {
        panic!("{node_id} is drained")
    }

    fn is_draining<'a>(&'a self, node_id: &'a str) -> BoxFuture<'a, Result<bool, ServerError>> {
        panic!("the drain of {node_id} is waited for")
    }

    fn read<'a>(
        &'a self,
        read: &'a crate::server::TemplateRead,
    ) -> BoxFuture<'a, Result<(Option<Value>, u64), ServerError>> {
        panic!("{read:?} is read")
    }

    fn sign_identities(
        &self,
        wanted: Vec<WorkloadIdentityRequest>,
        _: u64,
    ) -> BoxFuture<'_, Result<AllocIdentitiesResponse, ServerError>> {
        let mut answer = AllocIdentitiesResponse::default();
        for request in wanted {
            if self.rejects {
                answer.rejections.push(WorkloadIdentityRejection { request, reason: "no such".to_string() });
                continue;
            }
            let mut asked = self.asked.lock().unwrap();
            asked.push(request.identity_name.clone());
            let claims = json!({"nth": asked.len(), "exp": clock::now().secs() + self.lives});
            let jwt = format!("h.{}.s", URL_SAFE_NO_PAD.encode(claims.to_string()));
            answer.signed_identities.push(SignedWorkloadIdentity { request, jwt, ..Default::default() });
        }
        Box::pin(std::future::ready(Ok(answer)))
    }
}

struct TestTask {
    _home: tempfile::TempDir,
    context: TaskContext,
    signers: Arc<Signers>,
    hook: Identities,
    state: HookState,
    requests: mpsc::Receiver<TaskRequest>,
    /// Keeps the channel of requests open.
    _sender: mpsc::Sender<TaskRequest>,
}

impl TestTask {
    fn new(task: Value, signers: Signers) -> TestTask {
        let home = tempfile::tempdir().unwrap();
        let mut context = testing::task_context(&testing::context(home.path()));
        let mut alloc = Allocation::clone(&testing::alloc());
        let mut groups = alloc.job.as_ref().unwrap().task_groups.clone();
        groups[0].tasks[0] = serde_json::from_value(task).unwrap();
        alloc.job.as_mut().unwrap().task_groups = groups;
        context.alloc = watch::channel(Arc::new(alloc)).1;
        let signers = Arc::new(signers);
        let queries: Arc<dyn ServerQueries> = signers.clone();
        context.context.servers.set(queries).unwrap();
        let (sender, requests) = mpsc::channel(1);
        context.requests = sender.downgrade();
        context.alloc_dir.build_task("t", None).unwrap();
        let (hook, state) = (Identities::default(), HookState::default());
        TestTask { _home: home, context, signers, hook, state, requests, _sender: sender }
    }

    async fn start(&mut self) -> Result<(), HookError> {
        let mut start = StartRequest::new(&self.context);
        self.hook.prestart(&self.context, &mut start, &mut self.state).await
    }

    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut *self.signers.asked.lock().unwrap())
    }

    fn secret(&self, name: &str) -> PathBuf {
        self.context.alloc_dir.task("t").secrets.join(name)
    }
}

fn nth(token: &str) -> u64 {
    identity::claims(token).unwrap()["nth"].as_u64().unwrap()
}

#[tokio::test]
async fn tokens_are_where_the_job_wants_them_and_are_asked_for_once() {
    let identities = json!([
        {"Name": "bank", "Env": true, "File": true},
        {"Name": "shop", "File": true, "Filepath": "local/shop.jwt"},
        {"Name": "unseen"},
    ]);
    let task = json!({"Name": "t", "Identity": {"Name": "default", "Env": true, "File": true}, "Identities": identities});
    let mut task = TestTask::new(task, Signers { lives: 3600, ..Signers::default() });
    task.context
        .context
        .put_default_tokens(testing::ALLOC_ID, [("t".to_string(), "given".to_string())].into());
    task.start().await.unwrap();
    assert_eq!(task.asked(), ["bank", "shop"], "one came with the allocation, one is not seen");
    assert_eq!(
        (task.state.env["NOMAD_TOKEN"].as_str(), nth(&task.state.env["NOMAD_TOKEN_bank"])),
        ("given", 1)
    );
    assert_eq!(task.state.env.len(), 2);
    assert_eq!(std::fs::read_to_string(task.secret("nomad_token")).unwrap(), "given");
    let file = task.secret("nomad_bank.jwt");
    assert_eq!(nth(&std::fs::read_to_string(&file).unwrap()), 1);
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(task.context.alloc_dir.task("t").local.join("shop.jwt").is_file());

    task.start().await.unwrap();
    assert_eq!(task.asked(), [""; 0], "they are still good");
    // As the next agent does it.
    task.hook = Identities::default();
    task.start().await.unwrap();
    assert_eq!(task.asked(), [""; 0]);
}

#[tokio::test]
async fn a_token_that_has_expired_is_asked_for_anew() {
    let task = json!({"Name": "t", "Identities": [{"Name": "bank", "Env": true}]});
    let mut task = TestTask::new(task, Signers { lives: -1, ..Signers::default() });
    task.start().await.unwrap();
    task.start().await.unwrap();
    assert_eq!(task.asked(), ["bank", "bank"]);
}

#[tokio::test]
async fn what_the_servers_reject_fails_the_start_with_their_reason() {
    let task = json!({"Name": "t", "Identities": [{"Name": "bank", "Env": true}]});
    let mut task = TestTask::new(task, Signers { rejects: true, ..Signers::default() });
    let error = task.start().await.unwrap_err();
    assert!(error.recoverable);
    assert_eq!(error.to_string(), "identities: identity \"bank\": no such");
    let outside = json!({"Name": "t", "Identities": [{"Name": "bank", "File": true, "Filepath": "../x"}]});
    let error = TestTask::new(outside, Signers::default()).start().await.unwrap_err();
    assert_eq!(error.to_string(), "identities: filepath \"../x\" escapes the task directory");
}

#[tokio::test(start_paused = true)]
async fn a_token_is_renewed_before_it_expires_and_the_task_is_sent_its_signal() {
    let bank = json!({"Name": "bank", "File": true, "TTL": 60_000_000_000_u64, "ChangeMode": "signal", "ChangeSignal": "SIGHUP"});
    let task = json!({"Name": "t", "Identities": [bank]});
    let mut task = TestTask::new(task, Signers { lives: 60, ..Signers::default() });
    task.start().await.unwrap();
    let began = tokio::time::Instant::now();
    let request = task.requests.recv().await.unwrap();
    let passed = began.elapsed();
    assert!((29..=36).contains(&passed.as_secs()), "half of the time and a little more: {passed:?}");
    assert!(matches!(request, TaskRequest::Signal { signal: Signal::SIGHUP, .. }));
    assert_eq!(nth(&std::fs::read_to_string(task.secret("nomad_bank.jwt")).unwrap()), 2);
    drop(request);

    // The next agent goes on where this one has ended.
    task.hook = Identities::default();
    let mut state = task.state.clone();
    task.hook.restored(&task.context, &mut state).await.unwrap();
    assert!(task.requests.recv().await.is_some());
    task.hook.stop(&task.context).await.unwrap();
    assert!(task.hook.renewing.is_none());
}

#[test]
fn failures_are_retried_ever_more_rarely() {
    let waits: Vec<u64> = [1, 2, 3, 9, 10, 1000].map(|failures| backoff(failures).as_secs()).into();
    assert_eq!(waits, [10, 20, 40, 2560, 3600, 3600]);
    let mut rng = Rng::stream(1, "test");
    assert_eq!(renewal_wait(Duration::from_secs(4), &mut rng), RENEW_MIN);
}
