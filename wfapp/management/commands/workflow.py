"""`manage.py workflow VERB`: thin over `wfapp.cli`."""

import argparse
import types
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import InterfaceError, OperationalError

from wfapp.cli import verbs
from wfapp.cli.answers import Exit, Printer, VerbError, code_of, text_of_error
from wfapp.cli.context import Context
from wfcore.exceptions import RPCError


class Command(BaseCommand):
    """Start, look at, steer and end workflows."""

    help = "Start, look at, steer and end workflows. `workflow VERB --help` tells more."
    requires_system_checks = ()

    def create_parser(self, prog_name: str, subcommand: str, **kwargs: Any) -> CommandParser:
        parser = super().create_parser(prog_name, subcommand, **kwargs)
        _exit_with_one(parser)
        return parser

    def add_arguments(self, parser: CommandParser) -> None:
        found = parser.add_subparsers(dest="verb", required=True, metavar="VERB", title="verbs")
        groups = {"": found}
        for name, verb in verbs.VERBS.items():
            group, _, last = name.rpartition(" ")
            if group not in groups:
                groups[group] = _group(found, group, verbs.GROUPS[group])
            mine = groups[group].add_parser(last, help=verb.help, description=verb.help)
            _exit_with_one(mine)
            verbs.add_common(mine)
            verb.add_options(mine)
            mine.set_defaults(full_verb=name)

    def handle(self, *args: Any, **options: Any) -> None:
        printer = Printer(self.stdout, self.stderr, as_json=options["json"])
        context = Context(options=options, printer=printer)
        try:
            verbs.run(options["full_verb"], context)
        except VerbError as error:
            self._fail(printer, error.text, error.code)
        except RPCError as error:
            self._fail(printer, text_of_error(error), code_of(error))
        except (OperationalError, InterfaceError) as error:
            self._fail(printer, f"the database can't be reached: {error}", Exit.ERROR)

    @staticmethod
    def _fail(printer: Printer, text: str, code: Exit) -> None:
        printer.error(" ".join(text.split()), code)
        raise SystemExit(int(code))


def _group(found: Any, name: str, text: str) -> Any:
    """A verb that has verbs of its own."""
    parser = found.add_parser(name, help=text, description=text)
    _exit_with_one(parser)
    return parser.add_subparsers(dest="verb_of_group", required=True, metavar="VERB", title="verbs")


def _exit_with_one(parser: argparse.ArgumentParser) -> None:
    """Bad usage ends with 1; argparse's own 2 means "not found" here."""

    def error(self: argparse.ArgumentParser, message: str) -> None:
        if not getattr(self, "called_from_command_line", True):
            raise CommandError(f"Error: {message}")
        self.print_usage()
        self.exit(int(Exit.ERROR), f"Error: {message}\n")

    parser.error = types.MethodType(error, parser)  # type: ignore[method-assign]  # one object's
