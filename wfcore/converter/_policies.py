"""Policies of the public API in the form in which they are stored, and back."""

from wfcore import common
from wfcore.protocol import common as protocol
from wfcore.protocol import enums, metadata

_DEFAULT_MAXIMUM_FACTOR = 100


def retry_policy_to_protocol(policy: common.RetryPolicy) -> protocol.RetryPolicy:
    """The stored form, with the maximum interval filled in.

    Raises:
        ValueError: the policy is not valid.
    """
    policy.validate()
    return protocol.RetryPolicy(
        initial_interval=policy.initial_interval,
        backoff_coefficient=policy.backoff_coefficient,
        maximum_interval=policy.maximum_interval
        or policy.initial_interval * _DEFAULT_MAXIMUM_FACTOR,
        maximum_attempts=policy.maximum_attempts,
        non_retryable_error_types=tuple(policy.non_retryable_error_types or ()),
    )


def priority_to_protocol(priority: common.Priority) -> protocol.Priority:
    """The stored form; unset parts have protobuf's zero."""
    return protocol.Priority(
        priority_key=priority.priority_key or 0,
        fairness_key=priority.fairness_key or "",
        fairness_weight=priority.fairness_weight or 0.0,
    )


def priority_from_protocol(priority: protocol.Priority | None) -> common.Priority:
    """The public form; zeros are unset."""
    if priority is None:
        return common.Priority.default
    return common.Priority(
        priority_key=priority.priority_key or None,
        fairness_key=priority.fairness_key or None,
        fairness_weight=priority.fairness_weight or None,
    )


def versioning_override_to_protocol(
    override: common.VersioningOverride,
) -> metadata.VersioningOverride:
    """The stored form.

    Raises:
        TypeError: it is of no known kind.
    """
    match override:
        case common.AutoUpgradeVersioningOverride():
            return metadata.VersioningOverride(auto_upgrade=True)
        case common.PinnedVersioningOverride(version=version):
            pinned = metadata.VersioningOverridePinnedOverride(
                behavior=enums.PinnedOverrideBehavior.PINNED, version=_version(version)
            )
            return metadata.VersioningOverride(pinned=pinned)
        case common.OneTimeVersioningOverride(target_version=version):
            one_time = metadata.VersioningOverrideOneTimeOverride(
                target_deployment_version=_version(version)
            )
            return metadata.VersioningOverride(one_time=one_time)
    raise TypeError(
        f"{type(override).__name__} is no versioning override; use PinnedVersioningOverride, "
        "AutoUpgradeVersioningOverride or OneTimeVersioningOverride"
    )


def _version(version: common.WorkerDeploymentVersion) -> metadata.WorkerDeploymentVersion:
    return metadata.WorkerDeploymentVersion(
        deployment_name=version.deployment_name, build_id=version.build_id
    )
