-- The delivery whose failure has stopped an operation, or the first dead letter of which no request could be made. Operations that
-- stopped before this step name it in `why` only.
ALTER TABLE operations ADD COLUMN failed_delivery INTEGER;
