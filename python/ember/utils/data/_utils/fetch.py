"""Fetchers: from what the sampler gave to a batch."""


class _MapDatasetFetcher:
    """Keys, or a list of them, to a collated batch."""

    def __init__(self, dataset, auto_collation, collate_fn, drop_last):
        self.dataset = dataset
        self.auto_collation = auto_collation
        self.collate_fn = collate_fn
        self.drop_last = drop_last

    def fetch(self, possibly_batched_index):
        if not self.auto_collation:
            samples = self.dataset[possibly_batched_index]
        elif getattr(self.dataset, "__getitems__", None):
            samples = self.dataset.__getitems__(possibly_batched_index)
        else:
            samples = [self.dataset[key] for key in possibly_batched_index]
        return self.collate_fn(samples)


class _IterableDatasetFetcher(_MapDatasetFetcher):
    """The stream's next samples, as many as there are keys; StopIteration when it has ended."""

    def __init__(self, dataset, auto_collation, collate_fn, drop_last):
        super().__init__(dataset, auto_collation, collate_fn, drop_last)
        self.dataset_iter = iter(dataset)
        self.ended = False

    def fetch(self, possibly_batched_index):
        if self.ended:
            raise StopIteration
        if not self.auto_collation:
            return self.collate_fn(next(self.dataset_iter))
        samples = []
        for _ in possibly_batched_index:
            try:
                samples.append(next(self.dataset_iter))
            except StopIteration:
                self.ended = True
                break
        if not samples or (self.drop_last and len(samples) < len(possibly_batched_index)):
            raise StopIteration
        return self.collate_fn(samples)
