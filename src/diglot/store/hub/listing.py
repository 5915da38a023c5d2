"""The listing: what a repository at Hugging Face holds, asked by its own package.

The package is told the endpoint and the token each time, so that nothing of a person's own set-up is used that
was not given to us by a setting.
"""

from __future__ import annotations

import httpx2
from huggingface_hub import HfApi
from huggingface_hub.errors import GatedRepoError, HfHubHTTPError, HFValidationError, RepositoryNotFoundError

from diglot.core.digest import Digest
from diglot.core.errors import AccessRefused, NotOffered, UpstreamFailed
from diglot.core.source import FromHub
from diglot.store.hub.choice import Offered

_PATIENCE = 30.0


def files_of(source: FromHub, *, endpoint: str, token: str) -> tuple[str, tuple[Offered, ...]]:
    """Return the newest commit of a repository, and its files. Blocks.

    Raises NotOffered, AccessRefused, UpstreamFailed.
    """
    where = httpx2.URL(endpoint).host
    try:
        info = HfApi(endpoint, token=token or False).model_info(
            source.repository, files_metadata=True, timeout=_PATIENCE
        )
    except GatedRepoError:
        raise AccessRefused(where, reason=f"{source.repository} is only for those who accepted its terms") from None
    except (RepositoryNotFoundError, HFValidationError):
        raise NotOffered(str(source.ref), where=where) from None
    except HfHubHTTPError as error:
        raise UpstreamFailed(where, reason="it cannot list the repository", detail=str(error)) from error
    except (OSError, ValueError, TypeError, KeyError, httpx2.HTTPError) as error:
        raise UpstreamFailed(where, reason="it cannot be reached or makes no sense", detail=str(error)) from error
    offered = tuple(
        Offered(
            path=each.rfilename,
            size=each.lfs.size if each.lfs else each.size or 0,
            digest=_digest(each.lfs.sha256 if each.lfs else ""),
        )
        for each in info.siblings or ()
    )
    return info.sha or "main", offered


def _digest(sha256: str) -> Digest | None:
    try:
        return Digest(sha256)
    except ValueError:
        return None
