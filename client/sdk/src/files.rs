use api::AllocFileInfo;
use bytes::Bytes;
use reqwest::Method;

use crate::Error;
use crate::client::{Client, Query, segment};
use crate::stream::Frames;

/// Where in a file to begin, and whether to stay.
#[derive(Clone, Debug)]
pub struct FileRequest {
    /// Below the allocation's directory.
    pub path: String,
    pub follow: bool,
    /// Bytes from the start, or from the end with `from_end`.
    pub offset: u64,
    pub from_end: bool,
}

/// Files of an allocation, as its node has them. Paths begin in the allocation's directory.
impl Client {
    /// `GET /v1/client/fs/ls/:id`.
    pub async fn list_files(&self, id: &str, path: &str) -> Result<Vec<AllocFileInfo>, Error> {
        let query = Query::new().with("path", path);
        Ok(self.get(&format!("/v1/client/fs/ls/{}", segment(id)), query).await?.value)
    }

    /// `GET /v1/client/fs/stat/:id`.
    pub async fn stat_file(&self, id: &str, path: &str) -> Result<AllocFileInfo, Error> {
        let query = Query::new().with("path", path);
        Ok(self.get(&format!("/v1/client/fs/stat/{}", segment(id)), query).await?.value)
    }

    /// `GET /v1/client/fs/cat/:id`: the file, as it comes.
    pub async fn read_file(&self, id: &str, path: &str) -> Result<FileBody, Error> {
        let query = Query::new().with("path", path);
        let path = format!("/v1/client/fs/cat/{}", segment(id));
        let response = self.send(self.request(Method::GET, &path, query)).await?;
        Ok(FileBody { address: self.address().to_string(), response })
    }

    /// `GET /v1/client/fs/stream/:id`: the file, in pieces as they come.
    pub async fn stream_file(&self, id: &str, request: &FileRequest) -> Result<Frames, Error> {
        let query = Query::new()
            .with("path", &request.path)
            .with("follow", request.follow)
            .with("offset", request.offset)
            .with("origin", if request.from_end { "end" } else { "start" });
        let path = format!("/v1/client/fs/stream/{}", segment(id));
        let response = self.send(self.request(Method::GET, &path, query)).await?;
        Ok(Frames::new(self.address(), response))
    }
}

/// The bytes of one file.
#[derive(Debug)]
pub struct FileBody {
    address: String,
    response: reqwest::Response,
}

impl FileBody {
    /// The next bytes; `None` at the end.
    ///
    /// # Errors
    /// A broken connection.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        self.response.chunk().await.map_err(|error| Error::unreachable(&self.address, &error))
    }
}
