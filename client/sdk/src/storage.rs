use api::{
    CSIPluginListStub, CSISnapshot, CSISnapshotCreateRequest, CSISnapshotCreateResponse,
    CSISnapshotListResponse, CSIVolumeCreateRequest, CSIVolumeCreateResponse, CSIVolumeListStub,
    CSIVolumeRegisterRequest, CSIVolumeRegisterResponse,
};
use model::document::CSIVolume;
use reqwest::{Method, RequestBuilder};
use serde_json::Value;

use crate::Error;
use crate::client::{Answer, Client, Query, segment};

/// Secrets for a plugin go in a header of their own.
const SECRETS: &str = "X-Nomad-CSI-Secrets";

/// Volumes of storage plugins, and the plugins. `secrets` are `key=value` texts.
impl Client {
    /// `PUT /v1/volume/csi/:id/create`.
    pub async fn create_csi_volume(&self, volume: &CSIVolume) -> Result<CSIVolumeCreateResponse, Error> {
        let request = CSIVolumeCreateRequest { volumes: vec![volume.clone()].into(), policy_override: false };
        let path = format!("/v1/volume/csi/{}/create", segment(&volume.id));
        Ok(self.put(&path, Query::new(), &request).await?.value)
    }

    /// `PUT /v1/volume/csi/:id`.
    pub async fn register_csi_volume(&self, volume: &CSIVolume) -> Result<CSIVolumeRegisterResponse, Error> {
        let request =
            CSIVolumeRegisterRequest { volumes: vec![volume.clone()].into(), policy_override: false };
        Ok(self.put(&path(&volume.id), Query::new(), &request).await?.value)
    }

    /// `GET /v1/volumes?type=csi`.
    pub async fn csi_volumes(&self, query: Query) -> Result<Answer<Vec<CSIVolumeListStub>>, Error> {
        self.get("/v1/volumes", query.with("type", "csi")).await
    }

    /// `GET /v1/volume/csi/:id`, whole.
    pub async fn csi_volume(&self, id: &str) -> Result<Value, Error> {
        Ok(self.get(&path(id), Query::new()).await?.value)
    }

    /// `DELETE /v1/volume/csi/:id`: forgets it, and leaves what is stored.
    pub async fn deregister_csi_volume(&self, id: &str, force: bool) -> Result<(), Error> {
        let query = Query::new().with("force", force);
        self.send(self.request(Method::DELETE, &path(id), query)).await.map(drop)
    }

    /// `DELETE /v1/volume/csi/:id/delete`: with what is stored.
    pub async fn delete_csi_volume(&self, id: &str, secrets: &[String]) -> Result<(), Error> {
        let request = self.request(Method::DELETE, &format!("{}/delete", path(id)), Query::new());
        self.send(with_secrets(request, secrets)).await.map(drop)
    }

    /// `DELETE /v1/volume/csi/:id/detach`.
    pub async fn detach_csi_volume(&self, id: &str, node: &str) -> Result<(), Error> {
        let query = Query::new().with("node", node);
        self.send(self.request(Method::DELETE, &format!("{}/detach", path(id)), query)).await.map(drop)
    }

    /// `PUT /v1/volumes/snapshot`.
    pub async fn create_csi_snapshot(&self, snapshot: &CSISnapshot) -> Result<Vec<CSISnapshot>, Error> {
        let request = CSISnapshotCreateRequest { snapshots: vec![snapshot.clone()].into() };
        let answer: Answer<CSISnapshotCreateResponse> =
            self.put("/v1/volumes/snapshot", Query::new(), &request).await?;
        Ok(answer.value.snapshots.0)
    }

    /// `DELETE /v1/volumes/snapshot`.
    pub async fn delete_csi_snapshot(
        &self,
        plugin: &str,
        snapshot: &str,
        secrets: &[String],
    ) -> Result<(), Error> {
        let query = Query::new().with("plugin_id", plugin).with("snapshot_id", snapshot);
        let request = self.request(Method::DELETE, "/v1/volumes/snapshot", query);
        self.send(with_secrets(request, secrets)).await.map(drop)
    }

    /// `GET /v1/volumes/snapshot`. The query says which plugin is asked, and for which page.
    pub async fn csi_snapshots(
        &self,
        query: Query,
        secrets: &[String],
    ) -> Result<CSISnapshotListResponse, Error> {
        let request = self.request(Method::GET, "/v1/volumes/snapshot", query);
        let response = self.send(with_secrets(request, secrets)).await?;
        let text = response.bytes().await.map_err(|error| Error::unreachable(self.address(), &error))?;
        let broken = |source| Error::Answer { path: "/v1/volumes/snapshot".to_string(), source };
        model::document::input::from_slice(&text).map_err(broken)
    }

    /// `GET /v1/plugins?type=csi`.
    pub async fn csi_plugins(&self) -> Result<Answer<Vec<CSIPluginListStub>>, Error> {
        self.get("/v1/plugins", Query::new().with("type", "csi")).await
    }

    /// `GET /v1/plugin/csi/:id`, whole.
    pub async fn csi_plugin(&self, id: &str) -> Result<Value, Error> {
        Ok(self.get(&format!("/v1/plugin/csi/{}", segment(id)), Query::new()).await?.value)
    }
}

fn path(id: &str) -> String {
    format!("/v1/volume/csi/{}", segment(id))
}

fn with_secrets(request: RequestBuilder, secrets: &[String]) -> RequestBuilder {
    if secrets.is_empty() { request } else { request.header(SECRETS, secrets.join(",")) }
}
