"""What has come due is done: by a thread in every worker, by celery-beat, or by a beat entry."""
