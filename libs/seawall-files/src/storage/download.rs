//! Downloads: from the spool, the first store, the second one.

use std::ops::Range;

use super::FileStorage;
use super::report::Operation;
use crate::error::{FileError, FileErrorKind};
use crate::name::{FileId, content_type};
use crate::store::{FileContent, FileMetadata};

const ACTION: &str = "downloading a file";

impl FileStorage {
    /// Begins to read a file. What is not sent yet is read from the spool.
    pub async fn download_file(&self, id: &FileId) -> Result<FileContent, FileError> {
        self.download_part(id, None).await
    }

    /// Begins to read a range of the bytes of a file.
    pub async fn download_range(&self, id: &FileId, range: Range<u64>) -> Result<FileContent, FileError> {
        self.download_part(id, Some(range)).await
    }

    async fn download_part(&self, id: &FileId, range: Option<Range<u64>>) -> Result<FileContent, FileError> {
        let report = &self.shared.report;
        let span = report.begin(Operation::Download, id.as_str(), None);
        let result = self.find(id, range).await;
        match &result {
            Ok(content) => report.found(&span, content.metadata.bytes),
            Err(error) => report.not_found(&span, error),
        }
        result
    }

    async fn find(&self, id: &FileId, range: Option<Range<u64>>) -> Result<FileContent, FileError> {
        let shared = &*self.shared;
        let mut search = Search::default();
        if let Some(spool) = &shared.spool {
            match spool.find(id, range.clone()).await {
                Ok(Some(content)) => return Ok(content),
                Ok(None) => {}
                Err(error) => search.failed(error),
            }
        }
        let key = shared.key(id);
        for store in shared.stores() {
            match store.download(&key, range.clone()).await {
                Ok(mut content) => {
                    let known = content_type(id.name());
                    content.metadata.content_type.get_or_insert_with(|| known.to_owned());
                    return Ok(content);
                }
                Err(error) => search.failed(error),
            }
        }
        Err(search.ended())
    }

    /// What is known about a file; `None` if there is none.
    pub async fn metadata(&self, id: &FileId) -> Result<Option<FileMetadata>, FileError> {
        let shared = &*self.shared;
        let mut search = Search::default();
        let with_type = |mut metadata: FileMetadata| {
            metadata.content_type.get_or_insert_with(|| content_type(id.name()).to_owned());
            Some(metadata)
        };
        if let Some(spool) = &shared.spool {
            match spool.size(id).await {
                Ok(Some(bytes)) => return Ok(with_type(FileMetadata::new(bytes))),
                Ok(None) => {}
                Err(error) => search.failed(error),
            }
        }
        let key = shared.key(id);
        for store in shared.stores() {
            match store.metadata(&key).await {
                Ok(Some(metadata)) => return Ok(with_type(metadata)),
                Ok(None) => {}
                Err(error) => search.failed(error),
            }
        }
        match search.ended() {
            error if error.is_not_found() => Ok(None),
            error => Err(error),
        }
    }

    /// Whether there is such a file.
    pub async fn exists(&self, id: &FileId) -> Result<bool, FileError> {
        Ok(self.metadata(id).await?.is_some())
    }
}

/// A search through several places. A place that could not be asked may have the file: then nobody knows that there is none.
#[derive(Default)]
struct Search {
    error: Option<FileError>,
}

impl Search {
    fn failed(&mut self, error: FileError) {
        if *error.kind() != FileErrorKind::NotFound && self.error.is_none() {
            self.error = Some(error);
        }
    }

    fn ended(self) -> FileError {
        self.error.unwrap_or_else(|| FileError::not_found(ACTION))
    }
}
