//! Calls of the servers to storage plugins of this node.

use bytes::Bytes;
use wire::RemoteError;
use wire::messages::{Empty, method};

use super::Endpoints;
use super::serve::{decode, encode};

impl Endpoints {
    pub(super) async fn storage(&self, method: &str, body: &Bytes) -> Result<Vec<u8>, RemoteError> {
        let context = &self.local.context;
        let failed = |text: String| RemoteError::other(text);
        match method {
            method::CSI_CONTROLLER_ATTACH => encode(context.csi_attach(decode(body)?).await.map_err(failed)),
            method::CSI_CONTROLLER_DETACH => encode(context.csi_detach(decode(body)?).await.map_err(failed)),
            method::CSI_CONTROLLER_VALIDATE => {
                encode(context.csi_validate(decode(body)?).await.map_err(failed))
            }
            method::CSI_CONTROLLER_CREATE => encode(context.csi_create(decode(body)?).await.map_err(failed)),
            method::CSI_CONTROLLER_DELETE => encode(context.csi_delete(decode(body)?).await.map_err(failed)),
            method::CSI_CONTROLLER_EXPAND => encode(context.csi_expand(decode(body)?).await.map_err(failed)),
            method::CSI_CONTROLLER_LIST => encode(context.csi_list(decode(body)?).await.map_err(failed)),
            method::CSI_CONTROLLER_CREATE_SNAPSHOT => {
                encode(context.csi_create_snapshot(decode(body)?).await.map_err(failed))
            }
            method::CSI_CONTROLLER_DELETE_SNAPSHOT => {
                encode(context.csi_delete_snapshot(decode(body)?).await.map_err(failed))
            }
            method::CSI_CONTROLLER_LIST_SNAPSHOTS => {
                encode(context.csi_list_snapshots(decode(body)?).await.map_err(failed))
            }
            method::CSI_NODE_DETACH => {
                let detached = context.detach_volume(decode(body)?).await;
                encode(detached.map(|()| Empty {}).map_err(failed))
            }
            method::CSI_NODE_EXPAND => encode(context.expand_volume(decode(body)?).await.map_err(failed)),
            _ => Err(format!("unknown method {method}").into()),
        }
    }
}
