"""What a real server answers to bad and borderline requests, put to our service.

`errors.json` and `id_policies.json` are recordings; `left_out.json` says which rows wait, and for
what.
"""
