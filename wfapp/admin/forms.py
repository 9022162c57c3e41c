"""What is asked before something is done to runs."""

import json
from typing import Any

from django import forms
from django.utils.translation import gettext_lazy as _

from wfapp.models.columns import NAME_LENGTH


class ReasonForm(forms.Form):
    """Why: kept in the audit log, and shown to who looks at the run."""

    reason = forms.CharField(
        label=_("Reason"), max_length=1000, widget=forms.Textarea(attrs={"rows": 2, "cols": 80})
    )


class UnpauseForm(ReasonForm):
    """How a paused activity goes on."""

    reset_attempts = forms.BooleanField(
        label=_("Count attempts from 1 again"), required=False, initial=False
    )


class ResetForm(ReasonForm):
    """How an activity begins anew."""

    keep_paused = forms.BooleanField(label=_("Leave it paused if it is"), required=False)
    reset_heartbeat = forms.BooleanField(label=_("Forget heartbeat details"), required=False)
    restore_original_options = forms.BooleanField(
        label=_("With the options that it was scheduled with"), required=False
    )


class SignalForm(ReasonForm):
    """A signal and its arguments, checked before anything is sent."""

    name = forms.CharField(label=_("Signal name"), max_length=NAME_LENGTH)
    arguments = forms.CharField(
        label=_("Arguments"),
        required=False,
        help_text=_('A list in JSON, such as [true, "by phone"]; empty: none.'),
        widget=forms.Textarea(attrs={"rows": 3, "cols": 80}),
    )
    field_order = ("name", "arguments", "reason")

    def clean_arguments(self) -> list[Any]:
        text = self.cleaned_data["arguments"].strip()
        if not text:
            return []
        try:
            found = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise forms.ValidationError(
                _("This is no JSON: %(error)s"), params={"error": str(error)}
            ) from error
        if not isinstance(found, list):
            raise forms.ValidationError(_("The arguments are a list: put them into [ ]."))
        return found
